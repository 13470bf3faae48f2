// What Transformer::probe keeps is what the layers attended with, and nothing else changes.
#include "routing/core/error.h"
#include "routing/model/transformer.h"
#include "support/small_experiment.h"

#include <gtest/gtest.h>

namespace routing::transformer_probe_test {
namespace {

TEST(TransformerProbe, HoldsThePlansAndVectorsOfEveryLayerAndChangesNothing) {
  for (const ContentCase& item : content_cases()) {
    Transformer model(item.config, at::TensorOptions().dtype(at::kDouble));
    model->eval();
    const at::NoGradGuard no_gradient;
    const at::Tensor tokens = random_tokens(2, 32, 256, 1);
    const at::Tensor logits = model->logits(tokens, {});
    const std::vector<std::vector<GroupProbe>> probes = model->probe(tokens, {});
    ASSERT_EQ(probes.size(), 2U) << item.name;
    for (std::size_t layer = 0; layer < 2; ++layer) {
      const std::vector<Plan>& plans = model->states()[layer].self.plans;
      const AttentionConfig& config = model->block(layer)->attention()->config();
      ASSERT_EQ(probes[layer].size(), config.head_groups.size()) << item.name;
      std::int64_t heads = 0;
      for (std::size_t group = 0; group < plans.size(); ++group) {
        const GroupProbe& probe = probes[layer][group];
        EXPECT_TRUE(probe.plan == plans[group]) << item.name;
        EXPECT_EQ(probe.pattern_name, pattern_name(config.head_groups[group].pattern));
        EXPECT_EQ(probe.first_head, heads);
        // Two columns of a learned span.
        const std::int64_t dim = probe.pattern_name == "span" ? 6 : 4;
        EXPECT_EQ(probe.queries.sizes(), at::IntArrayRef({2, probe.heads(), 32, dim}));
        heads += probe.heads();
      }
      EXPECT_EQ(heads, 4);
      EXPECT_TRUE(model->states()[layer].self.probes.empty()) << "they are handed over, not kept";
    }
    EXPECT_TRUE(at::equal(model->logits(tokens, {}), logits)) << item.name;
    EXPECT_TRUE(model->states()[0].self.probes.empty()) << "later passes keep nothing";
  }
}

// The first layer reads the embedding alone, so that its attention can be called by itself.
TEST(TransformerProbe, FirstLayerIsThatOfItsAttentionOverTheEmbedding) {
  ExperimentConfig config = small_experiment("routing");
  config.model.norm = NormPlacement::post;
  Transformer model(config, at::TensorOptions().dtype(at::kDouble));
  model->eval();
  const at::NoGradGuard no_gradient;
  const at::Tensor tokens = random_tokens(2, 32, 256, 1);
  const std::vector<std::vector<GroupProbe>> probes = model->probe(tokens, {});
  const at::Tensor ids = at::cat({at::zeros({2, 1}, at::kLong), tokens.slice(1, 0, -1)}, 1);
  const at::Tensor table = model->named_parameters()["embedding"];
  AttentionState state{.keep_probes = true};
  model->block(0)->attention()->forward(table.index_select(0, ids.flatten()).view({2, 32, -1}), state);
  ASSERT_EQ(state.probes.size(), probes[0].size());
  for (std::size_t group = 0; group < state.probes.size(); ++group) {
    EXPECT_TRUE(at::allclose(state.probes[group].queries, probes[0][group].queries));
    EXPECT_TRUE(at::allclose(state.probes[group].keys, probes[0][group].keys));
    EXPECT_FALSE(at::allclose(state.probes[group].queries, probes[1][group].queries)) << "layers differ";
  }
}

TEST(TransformerProbe, IsRefusedInTrainingAndForgetsAfterAFailure) {
  Transformer model(small_experiment("routing"), at::TensorOptions().dtype(at::kDouble));
  EXPECT_THROW(model->probe(random_tokens(1, 32, 256, 1), {}), InputError);
  model->eval();
  EXPECT_THROW(model->probe(at::zeros({32}, at::kLong), {}), InputError);
  model->logits(random_tokens(1, 32, 256, 1), {});
  EXPECT_TRUE(model->states()[0].self.probes.empty());
}

}  // namespace
}  // namespace routing::transformer_probe_test
