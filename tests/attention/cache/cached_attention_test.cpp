// Attention that reads its sequences piece by piece against the pass over whole sequences: bit for bit.
#include "routing/attention/multi_head.h"
#include "routing/core/error.h"
#include "routing/kernels/dispatch/isa.h"
#include "support/pattern_cases.h"
#if defined(__x86_64__)
#include "support/amx/amx_emulator.h"
#endif

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace routing::cached_attention_test {
namespace {

using support::PatternCase;
using support::random_tensor;

constexpr std::int64_t kWidth = 48;

MultiHeadAttention attention_with(std::vector<HeadGroupConfig> groups,
                                  AttentionKind kind = AttentionKind::causal_self) {
  const AttentionConfig config{.name = "layer 3",
                               .kind = kind,
                               .width = kWidth,
                               .head_dim = 20,
                               .initial_scale = 1.0,
                               .head_groups = std::move(groups)};
  MultiHeadAttention attention(config, LayerPlace{.seed = 5}, at::TensorOptions().dtype(at::kFloat));
  attention->eval();
  const at::NoGradGuard no_gradient;
  // Thresholds that let some tokens into no cluster and others into several.
  for (auto& buffer : attention->named_buffers()) {
    if (buffer.key().find("tau") != std::string::npos) {
      buffer.value().copy_(random_tensor(buffer.value().sizes(), 17, at::kFloat) + 1.5);
    }
  }
  return attention;
}

at::Tensor whole(MultiHeadAttention& attention, const at::Tensor& input, MatmulPrecision precision) {
  const at::NoGradGuard no_gradient;
  AttentionState state{.precision = precision};
  return attention->forward(input, state);
}

// Reads sequence b of the input in pieces of these sizes, over and over, with a cache for that precision or for any.
at::Tensor in_pieces(MultiHeadAttention& attention, const at::Tensor& input, const std::vector<std::int64_t>& sizes,
                     MatmulPrecision precision, bool any_precision = false) {
  AttentionCache cache = any_precision ? attention->make_cache() : attention->make_cache({}, precision);
  std::vector<std::int64_t> sequences(static_cast<std::size_t>(input.size(0)));
  std::iota(sequences.begin(), sequences.end(), 0);
  for (const std::int64_t sequence : sequences) cache.add_sequence(sequence);
  std::vector<at::Tensor> pieces;
  std::size_t next = 0;
  for (std::int64_t first = 0; first < input.size(1);) {
    const std::int64_t count = std::min(sizes[next++ % sizes.size()], input.size(1) - first);
    pieces.push_back(attention->forward_cached(input.narrow(1, first, count), cache, sequences, precision));
    first += count;
  }
  return at::cat(pieces, 1);
}

// Every causal pattern, with the choices that change what attention computes.
std::vector<PatternCase> cached_cases() {
  std::vector<PatternCase> cases;
  for (PatternCase each : support::pattern_cases(AttentionKind::causal_self)) {
    each.group.heads = 2;
    const auto* routing = std::get_if<RoutingPattern>(&each.group.pattern);
    if (std::holds_alternative<RandomPattern>(each.group.pattern)) continue;
    if (routing != nullptr && routing->selection == RoutingSelection::balanced) continue;
    cases.push_back(each);
    PatternCase other = each;
    other.name += "_relative_mean";
    other.group.relative = routing != nullptr ? RelativePosition::rank : RelativePosition::true_offset;
    other.group.max_relative = 40;
    other.group.merge = Merge::mean;
    other.group.merge_eps = 0.01;
    cases.push_back(other);
    PatternCase near_sighted = each;
    near_sighted.name += "_recency";
    near_sighted.group.recency = true;
    near_sighted.group.relative = RelativePosition::true_offset;
    near_sighted.group.max_relative = 7;
    cases.push_back(near_sighted);
  }
  return cases;
}

std::vector<HeadGroupConfig> all_kinds() {
  std::vector<HeadGroupConfig> groups;
  for (const PatternCase& each : cached_cases()) groups.push_back(each.group);
  return groups;
}

std::string case_name(const ::testing::TestParamInfo<PatternCase>& info) {
  return info.param.name;
}

class CachedAttention : public ::testing::TestWithParam<PatternCase> {};

TEST_P(CachedAttention, EqualsTheWholePassInPiecesOfAnySize) {
  MultiHeadAttention attention = attention_with({GetParam().group});
  const at::Tensor input = random_tensor({2, 333, kWidth}, 3, at::kFloat);
  for (const MatmulPrecision precision : {MatmulPrecision::fp32, MatmulPrecision::bf16}) {
    const at::Tensor expected = whole(attention, input, precision);
    for (const std::vector<std::int64_t>& sizes :
         {std::vector<std::int64_t>{1}, {333}, {64}, {200, 1, 1, 1}, {3, 1, 130, 17}}) {
      EXPECT_TRUE(at::equal(in_pieces(attention, input, sizes, precision), expected))
          << "pieces of " << sizes.front() << " …, " << (precision == MatmulPrecision::bf16 ? "bf16" : "fp32");
    }
    EXPECT_TRUE(at::equal(in_pieces(attention, input, {3, 1, 130, 17}, precision, /*any_precision=*/true), expected));
  }
}

TEST_P(CachedAttention, TokensJoinTheGroupsOfTheWholePlan) {
  MultiHeadAttention attention = attention_with({GetParam().group});
  const at::NoGradGuard no_gradient;
  AttentionState state;
  const at::Tensor input = random_tensor({1, 150, kWidth}, 4, at::kFloat);
  attention->forward(input, state);
  const Plan& plan = state.plans[0];
  const std::vector<at::Tensor> masks{plan.to_dense_masks(0, 0), plan.to_dense_masks(0, 1)};
  AttentionCache cache = attention->make_cache();
  cache.add_sequence(0);
  const std::vector<std::int64_t> sequence{0};
  for (std::int64_t token = 0; token < input.size(1); ++token) {
    attention->forward_cached(input.narrow(1, token, 1), cache, sequence, MatmulPrecision::fp32);
    for (std::int64_t head = 0; head < 2; ++head) {
      // By the definition: the keys that count for this token, group after group.
      std::vector<std::int32_t> expected;
      const auto mask = masks[static_cast<std::size_t>(head)].accessor<bool, 3>();
      for (std::int64_t group = 0; group < mask.size(0); ++group) {
        for (std::int32_t key = 0; key < input.size(1); ++key) {
          if (mask[group][token][key]) expected.push_back(key);
        }
      }
      EXPECT_EQ(cache.last_plan(0).keys_of(0, head, 0), expected) << "token " << token << ", head " << head;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Patterns, CachedAttention, ::testing::ValuesIn(cached_cases()), case_name);

TEST(CachedLayer, AllKindsOfHeadsInOneLayerEqualTheWholePassAtEveryLevel) {
  MultiHeadAttention attention = attention_with(all_kinds());
  const at::Tensor input = random_tensor({2, 200, kWidth}, 6, at::kFloat);
  const kernels::Isa best = kernels::active_isa();
  for (const kernels::Isa isa : kernels::supported_isas()) {
    kernels::set_active_isa(isa);
    for (const MatmulPrecision precision : {MatmulPrecision::fp32, MatmulPrecision::bf16}) {
      const at::Tensor expected = whole(attention, input, precision);
      EXPECT_TRUE(at::equal(in_pieces(attention, input, {1}, precision), expected)) << to_string(isa);
      EXPECT_TRUE(at::equal(in_pieces(attention, input, {77, 1, 1}, precision), expected)) << to_string(isa);
    }
  }
  kernels::set_active_isa(best);
}

#if defined(__x86_64__)
// Under the emulator where only the tiles are missing.
TEST(CachedLayer, TilesOfBfloat16EqualTheWholePass) {
  const bool tiles = kernels::supported_isas().back() == kernels::Isa::amx;
  const bool emulated = kernels::supported_isas().back() == kernels::Isa::avx512_bf16 && support::can_run_amx();
  if (!tiles && !emulated) GTEST_SKIP() << "neither tiles nor AVX-512 with bfloat16 here";
  const support::AmxEmulator emulator;
  const kernels::Isa best = kernels::active_isa();
  kernels::assume_isa_runs(kernels::Isa::amx);
  kernels::set_active_isa(kernels::Isa::amx);
  MultiHeadAttention attention = attention_with(all_kinds());
  const at::Tensor input = random_tensor({1, 100, kWidth}, 6, at::kFloat);
  const at::Tensor expected = whole(attention, input, MatmulPrecision::bf16);
  EXPECT_TRUE(at::equal(in_pieces(attention, input, {90, 1}, MatmulPrecision::bf16), expected));
  EXPECT_TRUE(at::equal(in_pieces(attention, input, {33, 40, 1}, MatmulPrecision::bf16), expected));
  kernels::set_active_isa(best);
}
#endif

TEST(CachedLayer, SequencesOfDifferentLengthsDoNotFeelEachOther) {
  MultiHeadAttention attention = attention_with(all_kinds());
  const at::Tensor input = random_tensor({3, 90, kWidth}, 8, at::kFloat);
  const at::Tensor expected = whole(attention, input, MatmulPrecision::fp32);
  AttentionCache cache = attention->make_cache();
  const std::vector<std::int64_t> starts{0, 50, 7};
  for (std::int64_t b = 0; b < 3; ++b) {
    cache.add_sequence(b);
    const std::int64_t start = starts[static_cast<std::size_t>(b)];
    if (start == 0) continue;
    const std::vector<std::int64_t> alone{b};
    attention->forward_cached(input.narrow(0, b, 1).narrow(1, 0, start), cache, alone, MatmulPrecision::fp32);
  }
  const std::vector<std::int64_t> all{2, 0, 1};
  for (std::int64_t step = 0; step < 40; ++step) {
    std::vector<at::Tensor> next;
    for (const std::int64_t b : all) {
      next.push_back(input[b].narrow(0, starts[static_cast<std::size_t>(b)] + step, 1).unsqueeze(0));
    }
    const at::Tensor output = attention->forward_cached(at::cat(next, 0), cache, all, MatmulPrecision::fp32);
    for (std::int64_t row = 0; row < 3; ++row) {
      const std::int64_t b = all[static_cast<std::size_t>(row)];
      EXPECT_TRUE(at::equal(output[row][0], expected[b][starts[static_cast<std::size_t>(b)] + step]))
          << b << " " << step;
    }
  }
}

TEST(CachedLayer, AForkGoesItsOwnWay) {
  MultiHeadAttention attention = attention_with(all_kinds());
  at::Tensor input = random_tensor({2, 80, kWidth}, 9, at::kFloat);
  input[1].narrow(0, 0, 50).copy_(input[0].narrow(0, 0, 50));
  const at::Tensor expected = whole(attention, input, MatmulPrecision::fp32);
  AttentionCache cache = attention->make_cache();
  cache.add_sequence(0);
  attention->forward_cached(input.narrow(0, 0, 1).narrow(1, 0, 50), cache, std::vector<std::int64_t>{0},
                            MatmulPrecision::fp32);
  cache.fork_sequence(0, 1);
  for (std::int64_t token = 50; token < 80; ++token) {
    if (token == 60) cache.drop_sequence(0);
    const std::vector<std::int64_t> alive = token < 60 ? std::vector<std::int64_t>{0, 1} : std::vector<std::int64_t>{1};
    const at::Tensor next = input.narrow(0, token < 60 ? 0 : 1, token < 60 ? 2 : 1).narrow(1, token, 1);
    const at::Tensor output = attention->forward_cached(next, cache, alive, MatmulPrecision::fp32);
    for (std::size_t row = 0; row < alive.size(); ++row) {
      EXPECT_TRUE(at::equal(output[static_cast<std::int64_t>(row)][0], expected[alive[row]][token]));
    }
  }
}

TEST(CachedLayer, WindowsKeepABoundedStore) {
  const HeadGroupConfig local{.pattern = LocalPattern{.window = 16}, .heads = 2};
  const HeadGroupConfig routed{
      .pattern = RoutingPattern{.clusters = 4, .window = 8}, .heads = 2, .shared_query_key = true};
  MultiHeadAttention attention = attention_with({local, routed});
  AttentionCache cache = attention->make_cache();
  cache.add_sequence(0);
  const std::vector<std::int64_t> sequence{0};
  const at::Tensor input = random_tensor({1, 2000, kWidth}, 10, at::kFloat);
  std::int64_t early = 0;
  for (std::int64_t first = 0; first < 2000; first += 50) {
    attention->forward_cached(input.narrow(1, first, 50), cache, sequence, MatmulPrecision::fp32);
    if (first == 200) early = cache.bytes();
  }
  EXPECT_EQ(cache.bytes(), early);
  EXPECT_EQ(cache.bytes_per_token(), 0);
}

TEST(CachedLayer, FullHeadsKeepEveryKeyAndSaySo) {
  MultiHeadAttention attention = attention_with({{.pattern = FullPattern{}, .heads = 3}});
  AttentionCache cache = attention->make_cache();
  cache.add_sequence(0);
  cache.reserve(500);
  const std::int64_t reserved = cache.bytes();
  EXPECT_EQ(reserved, 500 * 3 * (20 + 20) * 4);
  attention->forward_cached(random_tensor({1, 500, kWidth}, 10, at::kFloat), cache, std::vector<std::int64_t>{0},
                            MatmulPrecision::fp32);
  EXPECT_EQ(cache.bytes(), reserved);
  EXPECT_EQ(cache.bytes_per_token(), 3 * ((20 + 20) * 4 + 4 + 4 * 4));  // row, holders, list and plan
  EXPECT_EQ(cache.bytes_per_forked_token(), 3 * 4 * 4);
}

TEST(CachedLayer, PatternsThatChooseFromTheWholeSequenceSayWhy) {
  const auto reason = [](const PatternConfig& pattern) {
    return attention_with({{.pattern = pattern, .heads = 2, .shared_query_key = true}})->reason_against_cache();
  };
  EXPECT_EQ(reason(RandomPattern{.groups = 2, .window = 4}), "layer 3: random heads draw from the whole sequence");
  EXPECT_EQ(reason(RoutingPattern{.selection = RoutingSelection::balanced, .clusters = 2}),
            "layer 3: routing.selection = balanced takes the best tokens of the whole sequence");
  EXPECT_EQ(reason(RoutingPattern{.selection = RoutingSelection::nearest, .clusters = 2}), "");
  EXPECT_THROW(attention_with({{.pattern = RandomPattern{}, .heads = 2}})->make_cache(), InputError);
}

TEST(CachedLayer, WrongCallsAreRefused) {
  MultiHeadAttention attention = attention_with({{.pattern = FullPattern{}, .heads = 2}});
  AttentionCache cache = attention->make_cache();
  cache.add_sequence(0);
  const auto call = [&](at::IntArrayRef sizes, const std::vector<std::int64_t>& sequences) {
    attention->forward_cached(at::zeros(sizes, at::kFloat), cache, sequences, MatmulPrecision::fp32);
  };
  EXPECT_THROW(call({1, 1, kWidth + 1}, {0}), InputError);
  EXPECT_THROW(call({1, 0, kWidth}, {0}), InputError);
  EXPECT_THROW(call({2, 1, kWidth}, {0}), InputError);
  EXPECT_THROW(call({1, 1, kWidth}, {4}), InputError);
  EXPECT_THROW(call({2, 1, kWidth}, {0, 0}), InputError);
  EXPECT_THROW(cache.add_sequence(0), InputError);
  EXPECT_THROW(cache.fork_sequence(7, 8), InputError);
}

// Cross-attention: a target that is read piece by piece, sources of different lengths.
TEST(CachedLayer, CrossAttentionEqualsTheWholePass) {
  std::vector<HeadGroupConfig> groups;
  for (PatternCase each : support::pattern_cases(AttentionKind::cross)) {
    const auto* routing = std::get_if<RoutingPattern>(&each.group.pattern);
    if (std::holds_alternative<RandomPattern>(each.group.pattern)) continue;
    if (std::holds_alternative<LocalPattern>(each.group.pattern)) continue;
    if (routing != nullptr && routing->selection == RoutingSelection::balanced) continue;
    each.group.heads = 2;
    groups.push_back(each.group);
  }
  ASSERT_GE(groups.size(), 4U);
  MultiHeadAttention attention = attention_with(groups, AttentionKind::cross);
  const at::Tensor input = random_tensor({2, 70, kWidth}, 11, at::kFloat);
  const at::Tensor memory = random_tensor({2, 90, kWidth}, 12, at::kFloat);
  at::Tensor valid = at::ones({2, 90}, at::kBool);
  valid[1].narrow(0, 61, 29).fill_(false);
  const at::NoGradGuard no_gradient;
  for (const MatmulPrecision precision : {MatmulPrecision::fp32, MatmulPrecision::bf16}) {
    AttentionState state{.memory = memory, .memory_valid = valid, .precision = precision};
    const at::Tensor expected = attention->forward(input, state);
    AttentionCache cache = attention->make_cache({}, precision);
    for (std::int64_t b = 0; b < 2; ++b) {
      cache.add_sequence(b);
      attention->set_memory(cache, b, {memory.narrow(0, b, 1), valid.narrow(0, b, 1)}, precision);
    }
    for (std::int64_t token = 0; token < 70; ++token) {
      const at::Tensor output =
          attention->forward_cached(input.narrow(1, token, 1), cache, std::vector<std::int64_t>{0, 1}, precision);
      EXPECT_TRUE(at::equal(output, expected.narrow(1, token, 1))) << token;
    }
  }
}

}  // namespace
}  // namespace routing::cached_attention_test
