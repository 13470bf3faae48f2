#include "routing/ops/dense/adaptive_embedding.h"

#include "routing/core/error.h"
#include "support/finite_differences.h"
#include "support/message_of.h"
#include "support/pattern_cases.h"
#include "support/thread_guard.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <vector>

namespace routing::adaptive_embedding_test {
namespace {

using support::random_tensor;

// Bands of 5, 1 and 60 words, 8, 4 and 2 numbers wide; two rows more than words in the first, the last for id 66.
std::vector<at::Tensor> make_leaves(at::ScalarType type) {
  return {random_tensor({7, 8}, 1).to(type), random_tensor({1, 4}, 2).to(type), random_tensor({60, 2}, 3).to(type),
          random_tensor({8, 4}, 4).to(type), random_tensor({8, 2}, 5).to(type)};
}

BandedTable table_of(const std::vector<at::Tensor>& leaves) {
  return {.bands = {{.words = 5, .table = leaves[0]},
                    {.words = 1, .table = leaves[1], .projection = leaves[3]},
                    {.words = 60, .table = leaves[2], .projection = leaves[4]}},
          .extra_row = 6};
}

at::Tensor ids_of_all_bands() {
  return at::tensor({4, 66, 5, 65, 0, 5, 30, 4, 6, 66, 6, 1}, at::kLong).view({3, 4});
}

TEST(AdaptiveEmbedding, EqualsPlainLoops) {
  const std::vector<at::Tensor> leaves = make_leaves(at::kFloat);
  const at::Tensor ids = ids_of_all_bands();
  const at::Tensor vectors = adaptive_embedding(ids, table_of(leaves), MatmulPrecision::fp32);
  ASSERT_EQ(vectors.sizes(), at::IntArrayRef({3, 4, 8}));
  for (std::int64_t position = 0; position < ids.numel(); ++position) {
    const auto id = ids.flatten()[position].item<std::int64_t>();
    for (std::int64_t i = 0; i < 8; ++i) {
      double expected = 0.0;
      if (id < 5 || id == 66) {
        expected = leaves[0][id == 66 ? 6 : id][i].item<double>();
      } else {
        const bool second = id == 5;
        const at::Tensor row = second ? leaves[1][0] : leaves[2][id - 6];
        const at::Tensor projection = leaves[second ? 3 : 4];
        for (std::int64_t j = 0; j < row.size(0); ++j) {
          expected += projection[i][j].item<double>() * row[j].item<double>();
        }
      }
      EXPECT_NEAR(vectors.view({12, 8})[position][i].item<double>(), expected, 1e-6) << "id " << id << ", number " << i;
    }
  }
}

TEST(AdaptiveEmbedding, GradientsEqualFiniteDifferencesInDouble) {
  for (const at::Tensor& ids : {ids_of_all_bands(), at::tensor({1, 3, 1}, at::kLong), at::tensor({7, 9}, at::kLong)}) {
    const auto function = [&](const std::vector<at::Tensor>& leaves) {
      return adaptive_embedding(ids, table_of(leaves), MatmulPrecision::fp32).flatten();
    };
    EXPECT_LT(support::jacobian_error(function, make_leaves(at::kDouble)), 1e-8);
  }
}

TEST(AdaptiveEmbedding, ABandWithoutIdsHasGradientsOfZeros) {
  std::vector<at::Tensor> leaves = make_leaves(at::kFloat);
  for (at::Tensor& leaf : leaves) leaf.requires_grad_();
  const at::Tensor vectors =
      adaptive_embedding(at::tensor({0, 4, 66}, at::kLong), table_of(leaves), MatmulPrecision::fp32);
  const auto gradients = torch::autograd::grad({vectors}, leaves, {at::ones_like(vectors)});
  EXPECT_TRUE(at::equal(gradients[0].sum(1), at::tensor({8.0F, 0.0F, 0.0F, 0.0F, 8.0F, 0.0F, 8.0F})));
  for (const std::size_t other : {1U, 2U, 3U, 4U}) {
    EXPECT_TRUE(at::equal(gradients[other], at::zeros_like(leaves[other]))) << other;
  }
}

TEST(AdaptiveEmbedding, BitsDependNeitherOnOtherIdsNorOnThreads) {
  const support::ThreadGuard guard;
  const at::Tensor ids = at::arange(500, at::kLong) * 31 % 67;
  for (const MatmulPrecision precision : {MatmulPrecision::fp32, MatmulPrecision::bf16}) {
    const auto run = [&] {
      std::vector<at::Tensor> leaves = make_leaves(at::kFloat);
      for (at::Tensor& leaf : leaves) leaf.requires_grad_();
      const at::Tensor vectors = adaptive_embedding(ids, table_of(leaves), precision);
      auto results = torch::autograd::grad({vectors}, leaves, {random_tensor({500, 8}, 9).to(at::kFloat)});
      results.push_back(vectors.detach());
      return results;
    };
    set_num_threads(1);
    const auto expected = run();
    for (const int threads : {2, 3}) {
      set_num_threads(threads);
      const auto again = run();
      for (std::size_t i = 0; i < again.size(); ++i)
        EXPECT_TRUE(at::equal(again[i], expected[i])) << threads << ": " << i;
    }
    for (const std::int64_t position : {0, 7, 66, 499}) {
      const at::Tensor alone =
          adaptive_embedding(ids.narrow(0, position, 1), table_of(make_leaves(at::kFloat)), precision);
      EXPECT_TRUE(at::equal(alone[0], expected.back()[position])) << position;
    }
  }
}

TEST(AdaptiveEmbedding, IdsOfNoBandAndBandsThatDoNotFitAreRefused) {
  const std::vector<at::Tensor> leaves = make_leaves(at::kFloat);
  BandedTable table = table_of(leaves);
  const auto look_up = [&](std::int64_t id) {
    return message_of<InputError>(
        [&] { adaptive_embedding(at::tensor({id}, at::kLong), table, MatmulPrecision::fp32); });
  };
  EXPECT_EQ(look_up(67), "adaptive_embedding: id 67 at position 0, but ids are 0 to 66");
  EXPECT_EQ(look_up(-1), "adaptive_embedding: id -1 at position 0, but ids are 0 to 66");
  table.extra_row = -1;
  EXPECT_EQ(look_up(66), "adaptive_embedding: id 66 at position 0, but ids are 0 to 65");
  table.bands[2].projection = at::Tensor();
  EXPECT_EQ(look_up(0),
            "adaptive_embedding: one band gives vectors of 8 numbers and another of 2; project all of them to one "
            "width");
  table = table_of(leaves);
  table.bands[1].words = 2;
  EXPECT_EQ(look_up(0), "adaptive_embedding: a table is [1, 4], but must be [at least 2, width of the band]");
  table.bands.clear();
  EXPECT_EQ(look_up(0), "adaptive_embedding: there are no bands; give at least one");
}

}  // namespace
}  // namespace routing::adaptive_embedding_test
