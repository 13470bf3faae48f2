#include "routing/training/run_samples.h"

#include "routing/core/error.h"
#include "routing/core/files.h"
#include "routing/data/images/png_image.h"
#include "routing/evaluation/evaluation_mode.h"
#include "routing/generation/decoder.h"
#include "routing/generation/generate.h"
#include "routing/generation/image_tokens.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <system_error>
#include <vector>

namespace routing {
namespace {

namespace fs = std::filesystem;

ImageShape shape_of(const ExperimentConfig& config) {
  return {.height = config.model.image_height, .width = config.model.image_width};
}

void make_samples_folder(const fs::path& folder) {
  const std::error_code error = make_folders(folder);
  require<FileError>(!error, folder.string(), ": cannot be made: ", error.message(),
                     "; choose a `run` that can be written");
}

}  // namespace

std::int64_t longest_reread_sample() {
  return static_cast<std::int64_t>((std::sqrt(8.0 * static_cast<double>(kMostReread) + 1.0) - 1.0) / 2.0);
}

std::int64_t length_of_samples(const ExperimentConfig& config) {
  return config.model.image_height > 0 ? shape_of(config).values() : config.train.sample_tokens;
}

std::vector<std::int32_t> draw_sample(Learner& learner, const DrawnSample& sample) {
  const EvaluationMode mode(learner.model());
  // What is cached of one sample fits beside a training.
  const std::unique_ptr<Decoder> decoder =
      make_decoder(learner.shared_model(),
                   {.precision = learner.precision(), .memory_limit = std::numeric_limits<std::int64_t>::max()});
  GenerateOptions options{.sampling = {.seed = static_cast<std::uint64_t>(sample.step)},
                          .max_new_tokens = sample.tokens,
                          .known_tokens = sample.known_tokens};
  if (!decoder->reason().empty()) {
    const std::int64_t row = std::max<std::int64_t>(1, 3 * learner.model().config().model.image_width);
    const std::int64_t most = std::max(row, longest_reread_sample() / row * row);
    options.max_new_tokens = std::min(options.max_new_tokens, most);
  }
  const std::vector<std::vector<std::int32_t>> nothing(1);
  std::vector<std::int32_t> tokens = generate(*decoder, nothing, options).front().tokens;
  // Passes over prefixes count what routed heads see, for an evaluation that this was not.
  learner.model().take_evaluation_statistics();
  return tokens;
}

void write_sample(const RunDirectory& run, Learner& learner, const TrainingData& data, std::int64_t step) {
  const ExperimentConfig& config = data.config();
  const ImageShape shape = shape_of(config);
  const bool image = shape.height > 0;
  const Tokenizer* const tokenizer = data.tokenizer();
  require<InputError>(config.model.encoder_layers == 0 && (image || tokenizer != nullptr), config.name,
                      ": nobody could read a sample of this model; set train.sample_every=0");
  const std::vector<std::int32_t> tokens = draw_sample(
      learner,
      {.step = step, .tokens = length_of_samples(config), .known_tokens = image ? 0 : tokenizer->vocabulary_size()});
  make_samples_folder(run.samples_folder());
  if (image) {
    write_png(run.sample_file(step, ".png"), image_from_tokens(tokens, shape));
  } else {
    write_file_at_once(run.sample_file(step, ".txt"), tokenizer->decode(tokens));
  }
}

}  // namespace routing
