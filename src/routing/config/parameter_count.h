// How many weights does a model have, and where? By arithmetic: no model is made, and any size is instant.
#pragma once

#include "routing/config/experiment.h"

#include <cstdint>

namespace routing {

struct ParameterCount {
  std::int64_t embedding = 0;  // tables of tokens and places, and the dense layer after them
  std::int64_t attention = 0;  // projections and relative tables; centroids are not parameters
  std::int64_t feedforward = 0;
  std::int64_t norms = 0;
  std::int64_t output = 0;
  // What one more word of the vocabulary adds to embedding and output.
  std::int64_t a_word = 0;

  std::int64_t stack() const { return attention + feedforward + norms; }
  std::int64_t total() const { return embedding + stack() + output; }
};

// Where model.vocab_size is 0, that of the data, the tables of words count nothing; a_word tells what they will.
ParameterCount count_parameters(const ExperimentConfig& config);

}  // namespace routing
