// Absolute positions of text: in decoder-only models too, with a cache and without.
#include "routing/model/absolute_positions.h"

#include "routing/config/parameter_count.h"
#include "routing/core/error.h"
#include "routing/model/transformer.h"
#include "support/message_of.h"
#include "support/pattern_cases.h"
#include "support/small_experiment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

namespace routing::absolute_positions_test {
namespace {

using Places = std::vector<std::int64_t>;

class Owner : public torch::nn::Module {};

LayerPlace place() {
  return {.part = "decoder embedding"};
}

AbsolutePositions positions_of(Owner& owner, PositionKind kind, std::int64_t longest) {
  const ModelConfig config{.positions = kind, .position_stride = 4, .width = 6};
  return {owner, config, place(), longest, at::TensorOptions(at::kDouble)};
}

TEST(Positions, NoneLeaveTheTokensAlone) {
  Owner owner;
  const at::Tensor x = support::random_tensor({2, 3, 6}, 1);
  EXPECT_TRUE(at::equal(positions_of(owner, PositionKind::none, 9).added_to(x, Places{0, 1, 2}), x));
  EXPECT_TRUE(owner.parameters().empty());
}

TEST(Positions, LearnedOnesAreRowsOfATable) {
  Owner owner;
  const AbsolutePositions positions = positions_of(owner, PositionKind::learned, 9);
  const at::Tensor table = owner.named_parameters()["positions"];
  ASSERT_EQ(table.sizes(), at::IntArrayRef({9, 6}));
  const at::Tensor x = support::random_tensor({2, 3, 6}, 1);
  const at::Tensor of_all = positions.added_to(x, Places{0, 1, 2});
  const at::Tensor of_each = positions.added_to(x, Places{4, 5, 6, 6, 7, 8});
  for (std::int64_t token = 0; token < 3; ++token) {
    EXPECT_TRUE(at::equal(of_all[1][token], x[1][token] + table[token]));
    EXPECT_TRUE(at::equal(of_each[0][token], x[0][token] + table[4 + token]));
    EXPECT_TRUE(at::equal(of_each[1][token], x[1][token] + table[6 + token]));
  }
}

// Ten tokens in cells of four: three cells, four places.
TEST(Positions, FactoredOnesAreTheSumOfCellAndPlace) {
  Owner owner;
  const AbsolutePositions positions = positions_of(owner, PositionKind::factored, 10);
  const at::Tensor cells = owner.named_parameters()["position_cells"];
  const at::Tensor places = owner.named_parameters()["position_places"];
  ASSERT_EQ(cells.sizes(), at::IntArrayRef({3, 6}));
  ASSERT_EQ(places.sizes(), at::IntArrayRef({4, 6}));
  const at::Tensor x = support::random_tensor({1, 10, 6}, 1);
  Places all(10);
  std::iota(all.begin(), all.end(), 0);
  const at::Tensor placed = positions.added_to(x, all);
  for (std::int64_t token = 0; token < 10; ++token) {
    EXPECT_TRUE(at::equal(placed[0][token], x[0][token] + cells[token / 4] + places[token % 4])) << token;
  }
  // Gradients: a cell is read by its tokens, a place once in each cell that has it.
  placed.sum().backward();
  const auto expect_gradient = [](const at::Tensor& table, const std::vector<double>& counts) {
    for (std::size_t row = 0; row < counts.size(); ++row) {
      EXPECT_TRUE(table.grad()[static_cast<std::int64_t>(row)].eq(counts[row]).all().item<bool>()) << row;
    }
  };
  expect_gradient(cells, {4, 4, 2});
  expect_gradient(places, {3, 3, 2, 2});
}

TEST(Positions, SinusoidalOnesScaleTheTokens) {
  Owner owner;
  const AbsolutePositions positions = positions_of(owner, PositionKind::sinusoidal, 2);
  const at::Tensor x = support::random_tensor({1, 2, 6}, 1);
  const at::Tensor placed = positions.added_to(x, Places{7, 300});
  const at::Tensor table = sinusoids(301, 6, at::kDouble);
  EXPECT_TRUE(at::equal(placed[0][1], x[0][1] * std::sqrt(6.0) + table[300])) << "they never end";
  EXPECT_TRUE(owner.parameters().empty());
}

TEST(Positions, BeyondTheTablesAreRefusedWithBothValues) {
  for (const auto& [kind, word] :
       {std::pair(PositionKind::learned, "learned"), std::pair(PositionKind::factored, "factored")}) {
    Owner owner;
    const AbsolutePositions positions = positions_of(owner, kind, 10);
    const at::Tensor x = at::zeros({1, 1, 6}, at::kDouble);
    positions.added_to(x, Places{9});
    EXPECT_EQ(message_of<InputError>([&] { positions.added_to(x, Places{10}); }),
              "decoder embedding: a sequence of 11 tokens, but model.positions = " + std::string(word) +
                  " has tables for 10 (train.source_length, train.sequence_length); use shorter sequences, or a model "
                  "with model.positions = sinusoidal");
  }
}

ExperimentConfig text_experiment(PositionKind kind, const std::string& content = "fixed") {
  ExperimentConfig config = odd_experiment(content, 90);
  config.model.positions = kind;
  config.model.position_stride = 16;
  config.model.embedding_width = 20;
  return config;
}

const std::vector<PositionKind> kKinds{PositionKind::sinusoidal, PositionKind::learned, PositionKind::factored};

TEST(PositionsOfDecoders, AreCountedAsWeights) {
  for (const PositionKind kind : kKinds) {
    const ExperimentConfig config = text_experiment(kind);
    const Transformer model(config, at::TensorOptions().device(at::kMeta));
    EXPECT_EQ(model->num_parameters(), count_parameters(config).total()) << to_string(kind);
  }
  ExperimentConfig config = text_experiment(PositionKind::factored);
  const std::int64_t factored = count_parameters(config).embedding;
  config.model.positions = PositionKind::none;
  EXPECT_EQ(factored - count_parameters(config).embedding, (6 + 16) * 36) << "90 tokens are six cells of 16";
}

TEST(PositionsOfDecoders, TellEqualTokensApart) {
  for (const PositionKind kind : kKinds) {
    Transformer model(text_experiment(kind, "local"), at::TensorOptions(at::kFloat));
    model->eval();
    const at::NoGradGuard no_gradient;
    ExperimentConfig without = text_experiment(PositionKind::none, "local");
    without.patterns.local.relative = RelativePosition::none;
    Transformer plain(without, at::TensorOptions(at::kFloat));
    plain->eval();
    const at::Tensor tokens = at::zeros({1, 90}, at::kLong);  // the start symbol too is 0
    const at::Tensor same = plain->logits(tokens, {});
    EXPECT_LE((same[0][89] - same[0][3]).abs().max().item<double>(), 1e-5) << "all that is read is the same";
    const at::Tensor logits = model->logits(tokens, {});
    EXPECT_GT((logits[0][89] - logits[0][88]).abs().max().item<double>(), 1e-3) << to_string(kind);
  }
}

TEST(PositionsOfDecoders, ReadPieceByPieceGiveTheBitsOfTheWholePass) {
  for (const PositionKind kind : kKinds) {
    Transformer model(text_experiment(kind), at::TensorOptions(at::kFloat));
    model->eval();
    const at::NoGradGuard no_gradient;
    const at::Tensor tokens = random_tokens(1, 90, 37, 3);
    const at::Tensor whole = model->logits(tokens, {});
    ModelCache cache = model->make_cache();
    const std::vector<std::int64_t> sequence{model->begin_sequence(cache, {}, {})};
    const at::Tensor previous = at::constant_pad_nd(tokens.narrow(1, 0, 89), {1, 0});
    std::vector<at::Tensor> pieces;
    for (std::int64_t first = 0; first < 90; first += 7) {
      const at::Tensor piece = previous.narrow(1, first, std::min<std::int64_t>(7, 90 - first));
      pieces.push_back(model->logits_cached(piece, cache, sequence, {}));
    }
    EXPECT_TRUE(at::equal(at::cat(pieces, 1), whole)) << to_string(kind);
  }
}

TEST(PositionsOfDecoders, EndWithTheTables) {
  Transformer model(text_experiment(PositionKind::factored), at::TensorOptions(at::kFloat));
  model->eval();
  const at::NoGradGuard no_gradient;
  EXPECT_THROW(model->logits(random_tokens(1, 91, 37, 3), {}), InputError);
  EXPECT_EQ(longest_of_positions(text_experiment(PositionKind::factored)), 90);
  EXPECT_EQ(longest_of_positions(text_experiment(PositionKind::learned)), 90);
  EXPECT_EQ(longest_of_positions(text_experiment(PositionKind::sinusoidal)), 0);
}

}  // namespace
}  // namespace routing::absolute_positions_test
