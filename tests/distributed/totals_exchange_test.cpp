// What ranks add up, compare and hand to each other beside gradients.
#include "routing/distributed/totals_exchange.h"

#include "distributed/rank_threads.h"
#include "routing/core/random.h"
#include "routing/distributed/optimizer_shards.h"
#include "routing/distributed/state_check.h"
#include "routing/model/transformer.h"
#include "support/message_of.h"
#include "support/small_experiment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <mutex>
#include <string>
#include <vector>

namespace routing::totals_exchange_test {
namespace {

constexpr std::int64_t kHeads = 2;
constexpr std::int64_t kClusters = 3;
constexpr std::int64_t kDim = 4;

// What a head saw of one token, all of it made up. Sums are of multiples of 2^-10, so that doubles add them exactly.
ClusterTotals seen_of(RandomStream& stream) {
  const auto count = [&] { return static_cast<std::int64_t>(stream.below(5)); };
  const auto sum = [&] { return static_cast<double>(stream.below(1U << 20U)) / 1024.0 - 512.0; };
  ClusterTotals seen(kClusters, kDim);
  seen.tokens = 1;
  seen.unrouted = count();
  seen.overlapping = count();
  seen.fallback = count();
  seen.squared_distance = sum();
  for (auto* numbers : {&seen.argmax, &seen.nearest, &seen.passing, &seen.members, &seen.moving}) {
    for (std::int64_t& number : *numbers) number = count();
  }
  for (auto* numbers : {&seen.score_sum, &seen.score_square_sum, &seen.moving_sum}) {
    for (double& number : *numbers) number = sum();
  }
  return seen;
}

// Bits of any kind: a minus zero, NaNs with payloads, numbers too small to be normal.
std::vector<float> vector_of(RandomStream& stream, std::uint64_t token) {
  std::vector<float> vector;
  for (std::int64_t i = 0; i < kDim; ++i) vector.push_back(std::bit_cast<float>(stream.next_u32()));
  constexpr std::array<std::uint32_t, 4> kSpecial{0x80000000U, 0x7fc01234U, 0xffabcdefU, 0x00000001U};
  vector[token % 4] = std::bit_cast<float>(kSpecial[token / 4 % 4]);
  return vector;
}

// The totals of some tokens; `sides` is 1 where queries are keys.
StepTotals totals_of(const std::vector<std::uint64_t>& tokens, std::size_t capacity, std::size_t sides) {
  StepTotals totals;
  for (std::size_t side = 0; side < sides; ++side) totals.totals[side].assign(kHeads, ClusterTotals(kClusters, kDim));
  totals.sample.assign(kHeads, TokenSample(capacity, kDim));
  for (const std::uint64_t token : tokens) {
    RandomStream stream(token, "made-up token");
    for (std::size_t head = 0; head < kHeads; ++head) {
      for (std::size_t side = 0; side < sides; ++side) totals.totals[side][head].add(seen_of(stream));
      totals.sample[head].offer(stream_key(token, "priority"), vector_of(stream, token));
    }
  }
  return totals;
}

void expect_equal(const ClusterTotals& a, const ClusterTotals& b) {
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.unrouted, b.unrouted);
  EXPECT_EQ(a.overlapping, b.overlapping);
  EXPECT_EQ(a.fallback, b.fallback);
  EXPECT_EQ(a.squared_distance, b.squared_distance);
  EXPECT_EQ(a.argmax, b.argmax);
  EXPECT_EQ(a.nearest, b.nearest);
  EXPECT_EQ(a.passing, b.passing);
  EXPECT_EQ(a.members, b.members);
  EXPECT_EQ(a.moving, b.moving);
  EXPECT_EQ(a.score_sum, b.score_sum);
  EXPECT_EQ(a.score_square_sum, b.score_square_sum);
  EXPECT_EQ(a.moving_sum, b.moving_sum);
}

void expect_equal(const TokenSample& a, const TokenSample& b) {
  EXPECT_EQ(a.capacity(), b.capacity());
  const auto left = a.entries();
  const auto right = b.entries();
  ASSERT_EQ(left.size(), right.size());
  for (std::size_t i = 0; i < left.size(); ++i) {
    EXPECT_EQ(left[i].priority, right[i].priority) << "place " << i;
    EXPECT_EQ(std::memcmp(left[i].vector.data(), right[i].vector.data(), kDim * sizeof(float)), 0) << "place " << i;
  }
}

// Tokens go to ranks unevenly: rank 0 has two of three.
TEST(TotalsExchange, TotalsAndSamplesOfSplitTokensAreThoseOfAllTokens) {
  struct Case {
    int ranks;
    std::uint64_t tokens;
    std::size_t capacity, sides;
  };
  for (const Case& item : {Case{1, 40, 8, 2}, Case{2, 40, 8, 2}, Case{3, 60, 16, 1}, Case{3, 7, 16, 2},
                           Case{3, 60, 0, 2}, Case{2, 1, 4, 1}}) {
    std::vector<std::uint64_t> all;
    std::vector<std::vector<std::uint64_t>> shares(static_cast<std::size_t>(item.ranks));
    for (std::uint64_t token = 0; token < item.tokens; ++token) {
      all.push_back(token);
      shares[token % 3 < 2 ? 0 : token % static_cast<std::uint64_t>(item.ranks)].push_back(token);
    }
    const StepTotals expected = totals_of(all, item.capacity, item.sides);
    as_ranks(item.ranks, [&](const Group& group) {
      const auto rank = static_cast<std::size_t>(group->rank());
      // Two groups of heads, the second without tokens.
      std::vector<StepTotals> own{totals_of(shares[rank], item.capacity, item.sides), totals_of({}, item.capacity, 1)};
      TotalsExchange exchange(*group, std::move(own), {.counts = {1, group->rank()}, .sums = {0.5}});
      const TotalsExchange::Result result = exchange.finish();
      ASSERT_EQ(result.totals.size(), 2U);
      for (std::size_t side = 0; side < 2; ++side) {
        ASSERT_EQ(result.totals[0].totals[side].size(), expected.totals[side].size());
        for (std::size_t head = 0; head < expected.totals[side].size(); ++head) {
          expect_equal(result.totals[0].totals[side][head], expected.totals[side][head]);
        }
      }
      for (std::size_t head = 0; head < kHeads; ++head) {
        expect_equal(result.totals[0].sample[head], expected.sample[head]);
        EXPECT_EQ(result.totals[1].totals[0][head].tokens, 0);
        EXPECT_TRUE(result.totals[1].sample[head].entries().empty());
      }
      EXPECT_EQ(result.extra.counts, (std::vector<std::int64_t>{item.ranks, item.ranks * (item.ranks - 1) / 2}));
      EXPECT_EQ(result.extra.sums, (std::vector<double>{0.5 * item.ranks}));
    });
  }
}

TEST(TotalsExchange, HeadsThatSampledDifferentlyAreRefused) {
  as_ranks(2, [](const Group& group) {
    StepTotals own = totals_of({1, 2}, 8, 1);
    own.sample[1].offer(3, std::vector<float>(kDim));
    TotalsExchange exchange(*group, {own}, {});
    EXPECT_EQ(message_of<InputError>([&] { exchange.finish(); }), "head 1 sampled 3 tokens, but head 0 2");
  });
}

Transformer model_of(const ExperimentConfig& config) {
  return Transformer(config, at::TensorOptions().dtype(at::kFloat));
}

// The model has seen these rows in evaluation.
void evaluate(TransformerImpl& model, const at::Tensor& tokens) {
  const at::NoGradGuard no_gradient;
  model.eval();
  model.loss(tokens, {.sample_ids = at::zeros({tokens.size(0)}, at::kLong)});
}

TEST(EvaluatedTotals, AreThoseOfAllRowsOnEveryRankAlsoOnOneThatSawNothing) {
  const ExperimentConfig config = small_experiment();
  const at::Tensor rows = random_tokens(5, 32, 256, 3);
  Transformer whole = model_of(config);
  evaluate(*whole, rows);
  as_ranks(3, [&](const Group& group) {
    Transformer model = model_of(config);
    if (group->rank() == 0) evaluate(*model, rows.slice(0, 0, 2));
    if (group->rank() == 2) evaluate(*model, rows.slice(0, 2, 5));
    share_evaluated_totals(*group, *model);
    const auto own = model->routed_groups();
    const auto all = whole->routed_groups();
    ASSERT_EQ(own.size(), all.size());
    for (std::size_t i = 0; i < own.size(); ++i) {
      const StepTotals& got = own[i].centroids->evaluated();
      const StepTotals& expected = all[i].centroids->evaluated();
      for (std::size_t side = 0; side < 2; ++side) {
        ASSERT_EQ(got.totals[side].size(), expected.totals[side].size());
        for (std::size_t head = 0; head < got.totals[side].size(); ++head) {
          const ClusterTotals& a = got.totals[side][head];
          const ClusterTotals& b = expected.totals[side][head];
          EXPECT_EQ(a.tokens, 5 * 32);
          EXPECT_EQ(a.tokens, b.tokens);
          EXPECT_EQ(a.members, b.members);
          EXPECT_EQ(a.argmax, b.argmax);
          EXPECT_NEAR(a.squared_distance, b.squared_distance, 1e-12 * b.squared_distance);
        }
      }
    }
    // What nobody has seen stays unseen.
    model->take_evaluation_statistics();
    share_evaluated_totals(*group, *model);
    EXPECT_TRUE(own[0].centroids->evaluated().empty());
  });
}

void turn_last_bit(const at::Tensor& tensor) {
  auto* bytes = static_cast<std::uint8_t*>(tensor.data_ptr());
  bytes[tensor.nbytes() - tensor.element_size()] ^= 1U;
}

// Every rank holds the same model but for one bit on one of them.
std::string drift(int rank, const std::function<at::Tensor(TransformerImpl&)>& place) {
  std::vector<std::string> messages(3);
  as_ranks(3, [&](const Group& group) {
    Transformer model = model_of(small_experiment());
    check_same_model(*group, *model, 6);
    if (group->rank() == rank) turn_last_bit(place(*model));
    messages[static_cast<std::size_t>(group->rank())] =
        message_of<DriftError>([&] { check_same_model(*group, *model, 7); });
  });
  EXPECT_EQ(messages[0], messages[1]);
  EXPECT_EQ(messages[0], messages[2]);
  return messages[0];
}

TEST(SameModel, OneBitOfARoutedGroupIsFoundAndNamedWithItsRank) {
  for (const char* buffer : {"centroids", "counts", "sums", "tau"}) {
    const std::string message =
        drift(2, [&](TransformerImpl& model) { return model.routed_groups()[1].centroids->named_buffers()[buffer]; });
    EXPECT_EQ(message.find("step 7: the centroids of layer 1 have hash "), 0U) << message;
    EXPECT_NE(message.find(" on rank 2, but "), std::string::npos) << message;
  }
}

TEST(SameModel, OneBitOfAWeightIsFoundAndNamedWithItsPartAndRank) {
  const std::string message =
      drift(1, [](TransformerImpl& model) { return model.block(1)->named_parameters().begin()->value(); });
  EXPECT_EQ(message.find("step 7: the weights of layer1 have hash "), 0U) << message;
  EXPECT_NE(message.find(" on rank 1, but "), std::string::npos) << message;
  EXPECT_EQ(drift(1, [](TransformerImpl& model) { return model.named_parameters()["output_bias"]; })
                .find("step 7: the weights of output_bias have hash "),
            0U);
}

TEST(SpreadParameters, TheLargestGoesToTheRankThatHasLeast) {
  // 10 to rank 0, 8 to 1, 8 to 2 (loads 10, 8, 8), 3 to 1 (11), 3 to 2 (11), 1 to 0 (11).
  EXPECT_EQ(spread_parameters({10, 3, 8, 8, 1, 3}, 3), (std::vector<int>{0, 1, 1, 2, 0, 2}));
  EXPECT_EQ(spread_parameters({5, 7}, 3), (std::vector<int>{1, 0}));
  EXPECT_EQ(spread_parameters({2, 2, 2}, 1), (std::vector<int>{0, 0, 0}));
}

std::vector<NamedParameter> parameters_of(float value) {
  return {{.name = "a", .value = at::full({6}, value)},
          {.name = "a.b", .value = at::full({2, 2}, value).requires_grad_()},
          {.name = "c", .value = at::full({1}, value)}};
}

TEST(OptimizerShards, EveryRankOwnsItsParametersAndHandsOutTheirValues) {
  as_ranks(3, [](const Group& group) {
    const auto rank = static_cast<float>(group->rank());
    const std::vector<NamedParameter> parameters = parameters_of(10.0F + rank);
    const OptimizerShards shards(*group, parameters);
    ASSERT_EQ(shards.own().size(), 1U);
    EXPECT_EQ(shards.own()[0].name, (std::array{"a", "a.b", "c"})[static_cast<std::size_t>(group->rank())]);
    EXPECT_EQ(shards.owns("a.first_moment"), group->rank() == 0);
    EXPECT_EQ(shards.owns("a.b.first_moment"), group->rank() == 1) << "not a moment \"b.first_moment\" of a";
    EXPECT_EQ(shards.owns("c.row_moment"), group->rank() == 2);
    EXPECT_TRUE(shards.owns("steps"));
    const std::int64_t version = parameters[1].value._version();
    shards.share_values();
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(at::equal(parameters[i].value, at::full_like(parameters[i].value, 10.0 + static_cast<double>(i))));
    }
    if (group->rank() != 1) {
      EXPECT_GT(parameters[1].value._version(), version) << "caches of weights must notice";
    }
  });
}

TEST(OptimizerShards, TheStateOfAllRanksComesTogetherOnTheFirst) {
  as_ranks(3, [](const Group& group) {
    const OptimizerShards shards(*group, parameters_of(0.0F));
    const auto number = static_cast<double>(group->rank());
    const std::string name = shards.own()[0].name;
    const auto state = shards.gather_state({{name + ".first_moment", at::full({3, 2}, number, at::kDouble)},
                                            {name + ".second_moment", at::full({2}, -number)},
                                            {"steps", at::full({}, 4, at::kLong)}});
    if (group->rank() != 0) {
      EXPECT_EQ(state.size(), 3U);
      return;
    }
    ASSERT_EQ(state.size(), 7U);
    EXPECT_EQ(state.at("steps").item<std::int64_t>(), 4);
    double expected = 0.0;
    for (const char* owner : {"a", "a.b", "c"}) {
      EXPECT_TRUE(at::equal(state.at(std::string(owner) + ".first_moment"), at::full({3, 2}, expected, at::kDouble)));
      EXPECT_TRUE(at::equal(state.at(std::string(owner) + ".second_moment"), at::full({2}, -expected)));
      ++expected;
    }
  });
}

TEST(BroadcastTensors, GivesThoseOfRankZeroAndDropsWhatNobodyKeeps) {
  for (const int ranks : {1, 3}) {
    as_ranks(ranks, [](const Group& group) {
      const std::map<std::string, at::Tensor> original{{"columns", at::arange(6, at::kFloat).view({3, 2}).t()},
                                                       {"empty", at::empty({0, 2})},
                                                       {"mine", at::full({4}, 7, at::kByte)},
                                                       {"steps", at::full({}, 9, at::kLong)}};
      const auto kept = broadcast_tensors(
          *group, group->leads() ? original : std::map<std::string, at::Tensor>{{"other", at::zeros({1})}},
          [&](const std::string& name) { return name != "mine" || group->leads(); });
      EXPECT_EQ(kept.size(), group->leads() ? 4U : 3U);
      for (const auto& [name, tensor] : kept) EXPECT_TRUE(same_bits(tensor, original.at(name))) << name;
    });
  }
  EXPECT_EQ(bytes_of({{"a", at::zeros({3}, at::kDouble)}, {"b", at::zeros({}, at::kLong)}}), 32);
}

}  // namespace
}  // namespace routing::totals_exchange_test
