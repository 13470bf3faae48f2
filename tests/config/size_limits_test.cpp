// Sizes of an experiment that ids, positions and memory cannot hold.
#include "routing/config/experiment.h"
#include "routing/config/keys.h"
#include "support/experiment_cases.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace routing::size_limits_test {
namespace {

using C = ExperimentConfig;

// Changes one thing about a good configuration.
template <class Change>
std::string refusal_after(const Change& change) {
  ExperimentConfig config;
  change(config);
  return refusal_of([&] { validate(config); });
}

// One more than each largest value is refused by its key, whatever else is wrong with it then.
TEST(ValidateExperiment, CountsHaveALargestValue) {
  const std::vector<std::pair<std::string, std::int64_t>> largest{{"model.layers", 10'000},
                                                                  {"model.encoder_layers", 10'000},
                                                                  {"model.width", 1 << 24},
                                                                  {"model.embedding_width", 1 << 24},
                                                                  {"model.feedforward_width", 1 << 24},
                                                                  {"model.head_dim", 1 << 24},
                                                                  {"attention.heads", 1 << 16},
                                                                  {"attention.cross_heads", 1 << 16},
                                                                  {"model.image_height", 1 << 14},
                                                                  {"model.image_width", 1 << 14},
                                                                  {"data.image_size", 1 << 14},
                                                                  {"model.vocab_size", 2147483647},
                                                                  {"model.position_stride", 2147483647},
                                                                  {"memory.length", 2147483647},
                                                                  {"memory.compressed", 2147483647},
                                                                  {"memory.rate", 2147483647},
                                                                  {"data.vocabulary_size", 2147483647},
                                                                  {"data.recall_keys", 2147483647},
                                                                  {"data.recall_values", 2147483647},
                                                                  {"data.recall_filler", 2147483647},
                                                                  {"train.batch_size", 2147483647},
                                                                  {"train.sequence_length", 2147483647},
                                                                  {"train.source_length", 2147483647},
                                                                  {"train.accumulation", 2147483647},
                                                                  {"train.sequence_ranks", 2147483647},
                                                                  {"train.sample_tokens", 2147483647},
                                                                  {"eval.batch_size", 2147483647},
                                                                  {"eval.memory", 2147483647}};
  for (const auto& [key, most] : largest) {
    for (const std::int64_t value : {most + 1, std::numeric_limits<std::int64_t>::max()}) {
      EXPECT_EQ(refusal_after([&](C& c) { set_key(c, key, std::to_string(value)); }),
                key + " is " + std::to_string(value) + ", but it must be at most " + std::to_string(most));
    }
    const std::string at_most = refusal_after([&](C& c) { set_key(c, key, std::to_string(most)); });
    EXPECT_EQ(at_most.find("but it must be at most"), std::string::npos) << at_most;
  }
  const std::string together = refusal_after([](C& c) {
    c.train.batch_size = 1 << 20;
    c.train.sequence_length = 1 << 30;
  });
  EXPECT_EQ(together.find("train.batch_size 1048576 sequences of 1073741824 tokens (train.sequence_length) are "), 0U)
      << together;
}

}  // namespace
}  // namespace routing::size_limits_test
