// Keys that stand elsewhere than at their positions, as caches keep them: the kernels at every level give the bits of
// keys in place.
#include "routing/core/error.h"
#include "routing/kernels/attend/attend.h"
#include "routing/kernels/dispatch/isa.h"
#include "support/pattern_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace routing::kernels::attend_rows_test {
namespace {

using routing::support::random_tensor;

constexpr std::int64_t kTokens = 150;
constexpr std::int64_t kDim = 20;
constexpr std::int64_t kRelative = 9;

// One unit, one group of all tokens with a window of 40.
struct Problem {
  std::vector<std::int32_t> order = std::vector<std::int32_t>(kTokens);
  std::vector<std::int64_t> groups{0, kTokens, 0, kTokens}, units{0, 1}, members, member_group,
      view_offsets{0, kTokens};
  std::vector<std::int32_t> member_rank;
  std::vector<QueryView> views;
  at::Tensor q = random_tensor({kTokens, kDim}, 1, at::kFloat);
  at::Tensor k = random_tensor({kTokens, kDim}, 2, at::kFloat);
  at::Tensor v = random_tensor({kTokens, kDim}, 3, at::kFloat);
  at::Tensor key_table = random_tensor({2 * kRelative + 1, kDim}, 4, at::kFloat);
  at::Tensor value_table = random_tensor({2 * kRelative + 1, kDim}, 5, at::kFloat);
  float slope = 0.07F;

  Problem() {
    std::iota(order.begin(), order.end(), 0);
    members.push_back(0);
    for (std::int32_t i = 0; i < kTokens; ++i) {
      views.push_back({.key_from = std::max(0, i - 39), .key_to = i + 1, .place = i + 1});
      members.push_back(i + 1);
      member_group.push_back(0);
      member_rank.push_back(i);
    }
  }
  AttendProblem problem(bool bf16) const {
    const auto rows = [](const at::Tensor& tensor) {
      return HeadRows<const float>{.data = tensor.data_ptr<float>(), .row_stride = kDim};
    };
    return {.plan = {.batch = 1,
                     .heads = 1,
                     .num_queries = kTokens,
                     .num_keys = kTokens,
                     .query_order = order.data(),
                     .key_order = order.data(),
                     .groups = groups.data(),
                     .unit_offsets = units.data(),
                     .member_offsets = members.data(),
                     .member_group = member_group.data(),
                     .member_rank = member_rank.data(),
                     .view_offsets = view_offsets.data(),
                     .views = views.data()},
            .rules = {.dim = kDim,
                      .value_dim = kDim,
                      .relative = RelativePosition::true_offset,
                      .max_relative = kRelative,
                      .relative_key = key_table.data_ptr<float>(),
                      .relative_value = value_table.data_ptr<float>(),
                      .recency_slopes = &slope,
                      .bf16 = bf16},
            .q = rows(q),
            .k = rows(k),
            .v = rows(v)};
  }
};

at::Tensor run(const AttendProblem& problem) {
  at::Tensor output = at::empty({kTokens, kDim}, at::kFloat);
  std::vector<float> lse(kTokens);
  attend_forward(problem, {.data = output.data_ptr<float>(), .row_stride = kDim}, lse.data());
  return output;
}

template <class Check>
void at_every_level(const Check& check) {
  const Isa best = active_isa();
  for (const Isa isa : supported_isas()) {
    set_active_isa(isa);
    for (const bool bf16 : {false, true}) check(bf16);
  }
  set_active_isa(best);
}

TEST(AttendRows, KeysMayStandAnywhere) {
  const Problem plain;
  // Row (37 j) mod 211 of a larger store holds key j.
  at::Tensor store_k = at::full({211, kDim}, 1e6F);
  at::Tensor store_v = at::full({211, kDim}, 1e6F);
  std::vector<std::int32_t> rows;
  for (std::int64_t j = 0; j < kTokens; ++j) {
    rows.push_back(static_cast<std::int32_t>(37 * j % 211));
    store_k[rows.back()].copy_(plain.k[j]);
    store_v[rows.back()].copy_(plain.v[j]);
  }
  at_every_level([&](bool bf16) {
    AttendProblem moved = plain.problem(bf16);
    moved.plan.key_rows = rows.data();
    moved.k.data = store_k.data_ptr<float>();
    moved.v.data = store_v.data_ptr<float>();
    EXPECT_TRUE(at::equal(run(moved), run(plain.problem(bf16))));
  });
}

TEST(AttendRows, OffsetsCountFromTheOriginOfTheQueries) {
  const Problem plain;
  // All keys later, and the queries with them: tables and recency know distances, not positions.
  for (const std::int32_t start : {5'000, 10'000, 100'000, 1'000'000, 2'000'000'000}) {
    std::vector<std::int32_t> later = plain.order;
    for (std::int32_t& position : later) position += start;
    at_every_level([&](bool bf16) {
      for (const bool tables : {true, false}) {
        AttendProblem expected = plain.problem(bf16);
        if (!tables) expected.rules.relative_key = expected.rules.relative_value = nullptr;
        AttendProblem moved = expected;
        moved.plan.key_order = later.data();
        moved.plan.key_rows = plain.order.data();
        moved.plan.query_origins = &start;
        EXPECT_TRUE(at::equal(run(moved), run(expected))) << "at " << start;
        if (!tables) continue;  // recency alone would not tell: all logits of a query would be off by the same
        const std::int32_t wrong = start - 2;
        moved.plan.query_origins = &wrong;
        EXPECT_FALSE(at::equal(run(moved), run(expected))) << "at " << start;
      }
    });
  }
}

// Queries 30 positions behind the rows they have, and logits of nothing but recency.
TEST(AttendRows, RecencyCountsTrueDistances) {
  const Problem plain;
  at_every_level([&](bool bf16) {
    AttendProblem problem = plain.problem(bf16);
    problem.rules.relative_key = problem.rules.relative_value = nullptr;
    at::Tensor zeros = at::zeros({kTokens, kDim}, at::kFloat);
    problem.q.data = zeros.data_ptr<float>();
    const std::int32_t late = 30;
    problem.plan.query_origins = &late;
    problem.plan.key_rows = plain.order.data();
    at::Tensor output = at::empty({kTokens, kDim}, at::kFloat);
    std::vector<float> lse(kTokens);
    attend_forward(problem, {.data = output.data_ptr<float>(), .row_stride = kDim}, lse.data());
    for (const std::int64_t i : {0, 1, 39, 40, 149}) {
      double sum = 0.0;
      for (std::int64_t j = std::max<std::int64_t>(0, i - 39); j <= i; ++j) {
        sum += std::exp(-0.07 * static_cast<double>(i + 30 - j));
      }
      EXPECT_NEAR(lse[static_cast<std::size_t>(i)], std::log(sum), 1e-5) << "query " << i;
    }
  });
}

TEST(AttendRows, TablesThatWerePackedBeforeGiveTheSameBits) {
  const Problem plain;
  at_every_level([&](bool bf16) {
    AttendProblem packed = plain.problem(bf16);
    const PackedTables tables(packed.rules);
    packed.rules.packed_tables = &tables;
    EXPECT_TRUE(at::equal(run(packed), run(plain.problem(bf16))));
  });
}

TEST(AttendRows, TheBackwardPassWantsKeysInPlace) {
  const Problem plain;
  AttendProblem moved = plain.problem(false);
  moved.plan.key_rows = plain.order.data();
  EXPECT_THROW(attend_backward(moved, {}), InputError);
}

TEST(AttendRows, RanksMayBeShiftedByWholeTiles) {
  const Problem plain;
  // The last query alone, with its first tile of keys left out.
  const std::int64_t last = kTokens - 1;
  Problem alone;
  alone.groups = {last, kTokens, kAttendTile, kTokens};
  QueryView view = plain.views.back();
  view.key_from -= static_cast<std::int32_t>(kAttendTile);
  view.key_to -= static_cast<std::int32_t>(kAttendTile);
  view.place -= static_cast<std::int32_t>(kAttendTile);
  alone.views = {view};
  alone.view_offsets = {0, 1};
  alone.members.assign(kTokens + 1, 0);
  alone.members.back() = 1;
  alone.member_group = {0};
  alone.member_rank = {0};
  at_every_level(
      [&](bool bf16) { EXPECT_TRUE(at::equal(run(alone.problem(bf16))[last], run(plain.problem(bf16))[last])); });
}

}  // namespace
}  // namespace routing::kernels::attend_rows_test
