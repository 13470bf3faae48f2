// What the model of a run makes up while it learns: samples/step-00001000.txt, or .png of images.
//
// A sample begins with nothing, and is what `generate` draws from the checkpoint of that step with the step's number as
// the seed: nucleus 0.8, temperature 1, no end token. It is a function of weights and step; it reads none of training's
// random streams and changes neither weights nor statistics.
//
// Models that re-run the prefix for every token (generation/decoder.h) would take as long for one sample as for many
// steps, so theirs are short: they end before more than kMostReread tokens were run again. Images then have as many
// whole rows as that gives, and the rest is grey.
#pragma once

#include "routing/training/learner.h"
#include "routing/training/run_directory.h"
#include "routing/training/training_data.h"

#include <cstdint>
#include <vector>

namespace routing {

inline constexpr std::int64_t kMostReread = 65536;

// How many tokens a sample can have so that running 1 + 2 + … + n tokens stays within kMostReread.
std::int64_t longest_reread_sample();

// How many a sample of this model has: train.sample_tokens, or those of an image.
std::int64_t length_of_samples(const ExperimentConfig& config);

struct DrawnSample {
  std::int64_t step = 0;
  std::int64_t tokens = 0;        // no more than these, nor than one of re-run prefixes can have
  std::int64_t known_tokens = 0;  // of the tokeniser; 0 means all
};
std::vector<std::int32_t> draw_sample(Learner& learner, const DrawnSample& sample);

// Draws the sample of this step and writes it. Throws an InputError for a model that reads a source or whose tokens no
// person can read, and a FileError if it cannot be written.
void write_sample(const RunDirectory& run, Learner& learner, const TrainingData& data, std::int64_t step);

}  // namespace routing
