// The small presets on the real sets: can they learn four crops by heart? A model that cannot has a wire loose
// somewhere between the files and the loss.
#include "routing/config/resolve.h"
#include "routing/core/parallel.h"
#include "routing/data/batches.h"
#include "routing/data/dataset.h"
#include "routing/training/learner.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <ostream>
#include <string>
#include <vector>

namespace routing::real_data_test {
namespace {

constexpr std::int64_t kCrops = 4;
constexpr std::int64_t kTokens = 256;
constexpr std::int64_t kMostSteps = 400;

struct RealSet {
  const char* name;
  const char* preset;
  const char* path;
};

void PrintTo(const RealSet& set, std::ostream* out) {
  *out << set.name;
}

class RealCrops : public testing::TestWithParam<RealSet> {};

ExperimentConfig config_of(const RealSet& set, const std::string& root, const std::string& cache) {
  const std::string path = root + "/" + set.path;
  return resolve({.preset = set.preset,
                  .settings = {"data.path=" + path, "data.cache=" + cache, "data.vocabulary_size=2000",
                               "train.sequence_length=256", "train.batch_size=4", "train.steps=400",
                               "train.learning_rate=2e-3", "train.schedule=constant", "train.warmup_steps=20",
                               "train.precision=fp32", "model.residual_dropout=0"}});
}

TEST_P(RealCrops, FourAreLearnedByHeart) {
  const char* const root = std::getenv("ROUTING_TEST_DATA");
  if (root == nullptr) GTEST_SKIP() << "ROUTING_TEST_DATA is not set";
  set_num_threads(available_cores());
  const TemporaryFolder cache;
  const ExperimentConfig asked = config_of(GetParam(), root, cache.path().string());
  const Dataset data(asked.data);
  const ExperimentConfig config = fitted_to(asked, data.facts());
  const TokenBatches batches(
      data.part("train").tokens,
      {.batch_size = kCrops, .sequence_length = kTokens, .seed = 7, .record_length = data.facts().record_length()});
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(kCrops * kTokens));
  std::vector<std::int64_t> ids(static_cast<std::size_t>(kCrops));
  batches.fill(0, tokens, ids);
  const TokenBatch crops{.tokens = at::tensor(tokens, at::kLong).view({kCrops, kTokens}),
                         .sample_ids = at::tensor(ids, at::kLong)};
  Learner learner(config);
  double loss = learner.step(std::span(&crops, 1)).loss_nats;
  EXPECT_GT(loss, 0.5 * std::log(static_cast<double>(config.model.vocab_size))) << "nothing is known at the start";
  std::int64_t step = 1;
  for (; step < kMostSteps && loss >= 0.1; ++step) loss = learner.step(std::span(&crops, 1)).loss_nats;
  EXPECT_LT(loss, 0.1) << GetParam().name;
  RecordProperty("steps", static_cast<int>(step));
}

INSTANTIATE_TEST_SUITE_P(Sets, RealCrops,
                         testing::Values(RealSet{"enwik8", "tiny-enwik8", "enwik8/enwik8"},
                                         RealSet{"wikitext", "tiny-wikitext103", "wikitext-103"},
                                         RealSet{"pg19", "tiny-pg19", "pg19"},
                                         RealSet{"cifar10", "tiny-cifar10", "cifar10"},
                                         RealSet{"imagenet64", "tiny-imagenet64", "imagenet64"}),
                         [](const auto& set) { return std::string(set.param.name); });

}  // namespace
}  // namespace routing::real_data_test
