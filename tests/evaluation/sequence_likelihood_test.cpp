// One sequence over ranks, which are threads here: the nats of the pass over the whole sequence, bit for bit.
#include "routing/evaluation/sequence_likelihood.h"

#include "routing/core/error.h"
#include "routing/evaluation/likelihood.h"
#include "routing/model/encoder_decoder.h"
#include "routing/model/transformer.h"
#include "support/message_of.h"
#include "support/pattern_cases.h"
#include "support/rank_threads.h"
#include "support/small_experiment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace routing::sequence_likelihood_test {
namespace {

using support::over_ranks;
using support::try_over_ranks;
using Ends = std::vector<std::int64_t>;

constexpr std::int64_t kTokens = 400;

// Lists of which 400 tokens fill several tiles, and windows that end inside of them.
ExperimentConfig split_experiment(const std::string& content) {
  ExperimentConfig config = odd_experiment(content, kTokens);
  std::get<StridedPattern>(config.patterns.strided.pattern).stride = 3;
  config.patterns.lsh.pattern = LshPattern{.buckets = 4, .rounds = 2, .window = 30};
  config.routing.routing().clusters = 3;
  config.routing.routing().window = 40;
  return config;
}

ExperimentConfig routed_experiment(RoutingSelection selection) {
  ExperimentConfig config = split_experiment("routing");
  config.routing.routing().selection = selection;
  if (selection == RoutingSelection::nearest) keys_as_they_stand(config.routing.group);
  return config;
}

std::vector<ContentCase> split_cases() {
  std::vector<ContentCase> cases;
  for (const char* content : {"local", "full", "strided", "lsh"}) cases.push_back({content, split_experiment(content)});
  ExperimentConfig blocks = split_experiment("local");
  std::get<LocalPattern>(blocks.patterns.local.pattern).form = LocalForm::block;
  blocks.patterns.local.recency = false;
  cases.push_back({"block", blocks});
  // Cells and their summaries, and positions that pieces must know.
  ExperimentConfig fixed = split_experiment("fixed");
  fixed.patterns.local.pattern = LocalPattern{.form = LocalForm::block, .window = 30, .flange = 0};
  fixed.model.positions = PositionKind::factored;
  fixed.train.sequence_length = kTokens + 20;  // its tables of places end there
  cases.push_back({"fixed", fixed});
  ExperimentConfig image = split_experiment("local2d");
  image.model.image_height = 20;
  image.model.image_width = 7;
  cases.push_back({"local2d", image});
  for (const RoutingSelection selection : {RoutingSelection::nearest, RoutingSelection::threshold}) {
    ExperimentConfig config = routed_experiment(selection);
    config.patterns.local.recency = true;
    config.model.norm = selection == RoutingSelection::nearest ? NormPlacement::post : NormPlacement::pre;
    cases.push_back({std::string(to_string(selection)), config});
    keys_as_they_stand(config.routing.group);
    config.routing.group.shared_query_key = false;
    cases.push_back({std::string(to_string(selection)) + "_with_keys", config});
  }
  return cases;
}

// Ranks share nothing, so each has a model of its own; weights come from the seed. Thresholds as training leaves them:
// some tokens pass several.
Transformer make_split_model(const ExperimentConfig& config) {
  Transformer model(config, at::TensorOptions().dtype(at::kFloat));
  const at::NoGradGuard no_gradient;
  for (auto& buffer : model->named_buffers()) {
    if (buffer.key().find("tau") == std::string::npos) continue;
    buffer.value().copy_(support::random_tensor(buffer.value().sizes(), 17, at::kFloat) * 0.5 + 1.5);
  }
  return model;
}

at::Tensor whole_nats(const ExperimentConfig& config, const at::Tensor& tokens, MatmulPrecision precision) {
  Transformer model = make_split_model(config);
  model->eval();
  const at::NoGradGuard no_gradient;
  return model->loss(tokens, {.precision = precision}).nats[0];
}

std::vector<std::int32_t> ids_of(const at::Tensor& tokens) {
  const at::Tensor ids = tokens.flatten().to(at::kInt).contiguous();
  return {ids.data_ptr<std::int32_t>(), ids.data_ptr<std::int32_t>() + ids.numel()};
}

std::vector<SequenceLikelihood> split_likelihood(const ExperimentConfig& config, const std::vector<std::int32_t>& ids,
                                                 int ranks, const SequenceOptions& options) {
  std::vector<SequenceLikelihood> results(static_cast<std::size_t>(ranks));
  over_ranks(ranks, [&](RankGroup& group) {
    SequenceOptions mine = options;
    mine.ranks = &group;
    Transformer model = make_split_model(config);
    results[static_cast<std::size_t>(group.rank())] = sequence_likelihood(*model, ids, mine);
  });
  return results;
}

class SplitSequence : public ::testing::TestWithParam<ContentCase> {};

TEST_P(SplitSequence, CostsTheNatsOfTheWholePassWhateverThePieces) {
  const at::Tensor tokens = random_tokens(1, kTokens, 37, 21);
  const auto ids = ids_of(tokens);
  // Even ones; a first piece of one token, without members of most clusters; a middle one shorter than any window; a
  // last one of one token, whose windows reach over two pieces. Empty ones: the first, one in the middle, the last two.
  const std::vector<std::vector<Ends>> cuts{
      {{400}},
      {{200, 400}, {1, 400}, {0, 400}},
      {{134, 267, 400}, {1, 8, 400}, {180, 193, 400}, {370, 399, 400}, {150, 150, 400}, {0, 230, 400}},
      {{100, 200, 300, 400}, {90, 91, 396, 400}, {210, 400, 400, 400}}};
  for (const MatmulPrecision precision : {MatmulPrecision::fp32, MatmulPrecision::bf16}) {
    const at::Tensor expected = whole_nats(GetParam().config, tokens, precision);
    NatsSum sum;
    for (std::int64_t i = 0; i < kTokens; ++i) sum.add(expected[i].item<double>());
    for (const std::vector<Ends>& of_ranks : cuts) {
      over_ranks(static_cast<int>(of_ranks.front().size()), [&](RankGroup& group) {
        Transformer model = make_split_model(GetParam().config);
        const auto rank = static_cast<std::size_t>(group.rank());
        for (const Ends& ends : of_ranks) {
          const SequenceLikelihood result =
              sequence_likelihood(*model, ids, {.ranks = &group, .ends = ends, .precision = precision});
          EXPECT_TRUE(at::equal(result.nats, expected)) << "ends " << ::testing::PrintToString(ends) << ", bf16 "
                                                        << (precision == MatmulPrecision::bf16) << ", rank " << rank;
          EXPECT_EQ(result.total, sum.total());
          EXPECT_EQ(result.begin, rank == 0 ? 0 : ends[rank - 1]);
          EXPECT_EQ(result.end, ends[rank]);
        }
      });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Contents, SplitSequence, ::testing::ValuesIn(split_cases()),
                         [](const auto& each) { return each.param.name; });

TEST(SplitSequences, OfTheseTestsHaveTokensInSeveralClusters) {
  Transformer model = make_split_model(routed_experiment(RoutingSelection::threshold));
  model->eval();
  const at::NoGradGuard no_gradient;
  model->loss(random_tokens(1, kTokens, 37, 21), {});
  for (const LayerStatistics& layer : model->take_evaluation_statistics()) {
    EXPECT_GT(layer.statistics.overlap_fraction, 0.05);
  }
}

TEST(SplitSequences, GoOnFromTheLastRankAsFromAWholePass) {
  for (const ContentCase& each : split_cases()) {
    const at::Tensor tokens = random_tokens(1, kTokens + 20, 37, 22);
    const auto ids = ids_of(tokens.narrow(1, 0, kTokens));
    at::Tensor expected;
    {
      Transformer model = make_split_model(each.config);
      model->eval();
      const at::NoGradGuard no_gradient;
      expected = model->logits(tokens, {});
    }
    over_ranks(2, [&](RankGroup& group) {
      Transformer model = make_split_model(each.config);
      ModelCache cache = model->make_cache();
      cache.add_sequence();
      const auto result = sequence_likelihood(*model, ids, {.ranks = &group, .ends = {150, kTokens}, .cache = &cache});
      EXPECT_EQ(result.cached, 1) << "behind the one that was there";
      EXPECT_EQ(cache.length(result.cached), result.end);
      EXPECT_TRUE(model->is_training()) << "as it was";
      if (group.rank() == 0) return;
      model->eval();
      for (std::int64_t position = kTokens; position < kTokens + 20; ++position) {
        const at::Tensor row = model->logits_cached(tokens.narrow(1, position - 1, 1), cache,
                                                    std::vector<std::int64_t>{result.cached}, {});
        EXPECT_TRUE(at::equal(row[0][0], expected[0][position])) << each.name << " at " << position;
      }
    });
  }
}

// What a head's keys cost on their way from one piece to another, counted with sets of positions over the plan of the
// whole pass: of each list the last keys before the piece that reads, as far as the window goes.
std::int64_t words_sent(const Plan& plan, const Ends& ends, std::size_t from, std::size_t to) {
  const std::int64_t begin = from == 0 ? 0 : ends[from - 1];
  const auto* positions = plan.key_order.data_ptr<std::int32_t>();
  const auto* first_group = plan.unit_offsets.data_ptr<std::int64_t>();
  std::int64_t words = 0;
  for (std::int64_t head = 0; head < plan.heads; ++head) {
    std::set<std::int32_t> rows;
    for (std::int64_t group = first_group[head]; group < first_group[head + 1]; ++group) {
      const GroupRange range = group_range(plan, group);
      std::int64_t end = range.k_begin;
      while (end < range.k_end && positions[end] < ends[to - 1]) ++end;
      for (std::int64_t k = std::max(range.k_begin, end - plan.rules.lookback.value_or(end)); k < end; ++k) {
        if (positions[k] < begin || positions[k] >= ends[from]) continue;
        rows.insert(positions[k]);
        ++words;  // its place in the list
      }
    }
    // How many rows; their positions, keys and values of 9 numbers.
    words += 1 + static_cast<std::int64_t>(rows.size()) * (1 + 9 + 9);
  }
  return words;
}

TEST(SplitSequences, SendTheBytesOfTheFormula) {
  const at::Tensor tokens = random_tokens(1, kTokens, 37, 21);
  for (const RoutingSelection selection : {RoutingSelection::nearest, RoutingSelection::threshold}) {
    const ExperimentConfig config = routed_experiment(selection);
    Transformer model = make_split_model(config);
    model->eval();
    const at::NoGradGuard no_gradient;
    model->loss(tokens, {});
    for (const Ends& ends : {Ends{134, 267, 400}, Ends{20, 30, 400}, Ends{200, 400}}) {
      const std::size_t ranks = ends.size();
      const auto results = split_likelihood(config, ids_of(tokens), static_cast<int>(ranks), {.ends = ends});
      for (std::size_t from = 0; from < ranks; ++from) {
        std::int64_t bytes = 0;
        for (const BlockState& layer : model->states()) {
          // Begin and tokens of the piece, one list of each of two local heads, three of each of two routed ones.
          bytes += 4 * (2 + 2 * 1 + 2 * 3) * (static_cast<std::int64_t>(ranks) - 1);
          // Shifted keys: the last queries of the two routed heads, of 9 numbers.
          bytes += 4 * config.routing.group.key_shift * 2 * 9 * (static_cast<std::int64_t>(ranks) - 1);
          for (std::size_t to = from + 1; to < ranks; ++to) {
            bytes += 8;
            for (const Plan& group : layer.self.plans) bytes += 4 * words_sent(group, ends, from, to);
          }
        }
        EXPECT_EQ(results[from].bytes_sent, bytes) << to_string(selection) << ", rank " << from << " of " << ranks;
      }
    }
  }
}

TEST(SplitSequences, OfModelsThatChooseFromTheWholeAreRefusedWithTheReason) {
  const std::vector<std::int32_t> ids(32, 3);
  const auto reason_of = [&](const ExperimentConfig& config) {
    const auto model = make_model(config, at::TensorOptions().dtype(at::kFloat));
    return message_of<ConfigError>([&] { sequence_likelihood(*model, ids, {}); });
  };
  EXPECT_NE(reason_of(routed_experiment(RoutingSelection::balanced)).find("best tokens of the whole sequence"),
            std::string::npos);
  EXPECT_NE(reason_of(split_experiment("random")).find("random heads draw from the whole sequence"), std::string::npos);
  EXPECT_NE(reason_of(small_pairs_experiment()).find("model.encoder_layers is 1"), std::string::npos);
}

TEST(SplitSequences, ThatTheRanksSeeDifferentlyAreRefusedOnAllOfThem) {
  const ExperimentConfig config = split_experiment("local");
  const auto refused = [&](int ranks, const std::function<SequenceOptions(int rank)>& options, std::size_t tokens,
                           std::int32_t other_token) {
    const auto errors = try_over_ranks(ranks, [&](RankGroup& group) {
      Transformer model = make_split_model(config);
      std::vector<std::int32_t> ids(tokens, 3);
      if (group.rank() == 1) ids.back() = other_token;
      SequenceOptions mine = options(group.rank());
      mine.ranks = &group;
      sequence_likelihood(*model, ids, mine);
    });
    for (const auto& error : errors) {
      ASSERT_TRUE(error);
      EXPECT_THROW(std::rethrow_exception(error), InputError);
    }
  };
  refused(
      2, [](int) { return SequenceOptions{}; }, 9, 4);
  refused(
      2,
      [](int rank) {
        return SequenceOptions{.ends = {4 + rank, 9}};
      },
      9, 3);
  refused(
      2,
      [](int rank) { return SequenceOptions{.precision = rank == 0 ? MatmulPrecision::fp32 : MatmulPrecision::bf16}; },
      9, 3);
  for (const Ends& ends : {Ends{9}, Ends{4, 8}, Ends{4, 10}, Ends{-1, 9}, Ends{9, 4}, Ends{5, 4}}) {
    refused(
        2, [&](int) { return SequenceOptions{.ends = ends}; }, 9, 3);
  }
}

TEST(SplitSequences, WithIdsOutsideOfTheVocabularyOrPastAnImageAreRefusedOnAllRanks) {
  for (const std::int32_t wrong : {-1, 37}) {
    const auto errors = try_over_ranks(2, [&](RankGroup& group) {
      Transformer model = make_split_model(split_experiment("local"));
      std::vector<std::int32_t> ids(20, 3);
      ids[4] = wrong;
      sequence_likelihood(*model, ids, {.ranks = &group});
    });
    for (const auto& error : errors) {
      ASSERT_TRUE(error);
      EXPECT_THROW(std::rethrow_exception(error), InputError);
    }
  }
  ExperimentConfig config = small_experiment("local");
  config.model.image_height = 2;
  config.model.image_width = 4;
  config.patterns.local.relative = RelativePosition::none;
  config.train.sequence_length = 24;
  Transformer model(config, at::TensorOptions().dtype(at::kFloat));
  EXPECT_THROW(sequence_likelihood(*model, std::vector<std::uint8_t>(25, 3), {}), InputError);
  const std::vector<std::uint8_t> image(24, 3);
  over_ranks(2, [&](RankGroup& group) {
    Transformer mine(config, at::TensorOptions().dtype(at::kFloat));
    const auto result = sequence_likelihood(*mine, image, {.ranks = &group});
    mine->eval();
    const at::NoGradGuard no_gradient;
    EXPECT_TRUE(at::equal(result.nats, mine->loss(at::full({1, 24}, 3, at::kLong), {}).nats[0]));
  });
}

TEST(EvenPieces, DifferByOneTokenAndTheLongerOnesComeFirst) {
  EXPECT_EQ(even_pieces(10, 1), (Ends{10}));
  EXPECT_EQ(even_pieces(10, 3), (Ends{4, 7, 10}));
  EXPECT_EQ(even_pieces(3, 3), (Ends{1, 2, 3}));
  EXPECT_EQ(even_pieces(2, 4), (Ends{1, 2, 2, 2}));
  EXPECT_EQ(readers_of(even_pieces(2, 4)), (std::vector<int>{0, 1}));
  EXPECT_EQ(readers_of(Ends{0, 5, 5, 9}), (std::vector<int>{1, 3}));
  EXPECT_THROW(even_pieces(0, 3), InputError);
  EXPECT_THROW(even_pieces(2, 0), InputError);
}

}  // namespace
}  // namespace routing::sequence_likelihood_test
