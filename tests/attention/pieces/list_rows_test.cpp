// Heads whose lists go through all pieces: a piece reads the last keys of each list before it, and nothing else.
#include "routing/attention/pieces/list_rows.h"

#include "routing/attention/plan/plan_builder.h"
#include "routing/ops/attend/attend.h"
#include "support/message_of.h"
#include "support/pattern_cases.h"
#include "support/piece_threads.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <optional>
#include <string>
#include <vector>

namespace routing::list_rows_test {
namespace {

using support::as_pieces;
using support::random_tensor;
using Ends = std::vector<std::int64_t>;
using Numbers = std::vector<std::int32_t>;

TEST(ReadsByList, IsForListsWithAWindowThatGoByContent) {
  for (const bool by_content : {true, false}) {
    EXPECT_TRUE(reads_by_list({.lists = 4, .lookback = 10}, by_content));
    EXPECT_FALSE(reads_by_list({.lists = 4}, by_content)) << "all keys of every list";
    EXPECT_FALSE(reads_by_list({.lists = 4, .lookback = 10, .block = 8}, by_content));
  }
  EXPECT_FALSE(reads_by_list({.lists = 1, .lookback = 10}, false)) << "one list of all keys: a window of neighbours";
  EXPECT_TRUE(reads_by_list({.lists = 1, .lookback = 10}, true)) << "one cluster";
}

// One head with three lists, of which a query reads the last two keys. Tokens 0 to 6 in pieces of 4, 1 and 2:
//
//   list 0   0 1 3 | 4 | 5        list 1   0 2 3 |   | 6        list 2   nobody before 6
Plan plan_of_piece(const std::vector<Numbers>& lists, std::int64_t tokens) {
  PlanBuilder builder(self_layout(1, 1, tokens, {}), {.lookback = 2}, PlanBuilder::Lists::one);
  for (const Numbers& list : lists) {
    const ListRange members = builder.add_queries(list);
    builder.add_group(members, members);
  }
  builder.end_unit();
  return builder.build();
}

Numbers numbers_of(const at::Tensor& tensor) {
  return {tensor.data_ptr<std::int32_t>(), tensor.data_ptr<std::int32_t>() + tensor.numel()};
}

TEST(JoinedLists, HandWorkedHaveTheLastKeysOfEachListAndEachRowOnce) {
  const ListRules rules{.lists = 3, .lookback = 2};
  const std::vector<std::vector<Numbers>> lists{
      {{0, 1, 3}, {0, 2, 3}, {}}, {{0}, {}, {}}, {{0}, {1}, {1}}};  // numbers in the piece
  const std::vector<std::int64_t> tokens{4, 1, 2};
  std::vector<JoinedLists> joined(3);
  const std::int64_t bytes = as_pieces({4, 5, 7}, [&](const SequencePiece& piece) {
    const auto number = static_cast<std::size_t>(piece.number());
    joined[number] = join_lists(plan_of_piece(lists[number], tokens[number]), rules, {}, piece);
  });
  EXPECT_FALSE(joined[0].plan.key_rows.defined()) << "nothing stands before the first piece";
  EXPECT_EQ(joined[0].reading->rows, 4);
  // List 0 of three keys and list 1 of three: the last two of each, which are 1, 3 and 2, 3; so three rows.
  EXPECT_EQ(joined[1].reading->rows, 1 + 3 + 1);
  EXPECT_EQ(numbers_of(joined[1].plan.key_order), (Numbers{0, 1, 3, 4, 0, 2, 3}));
  EXPECT_EQ(numbers_of(joined[1].plan.key_rows), (Numbers{4, 1, 3, 0, 4, 2, 3}))
      << "rank 0 of both lists did not come: nobody's row stands there";
  EXPECT_EQ(joined[1].plan.query_origin, 4);
  EXPECT_EQ(joined[1].plan.num_keys, 5);
  EXPECT_TRUE(joined[0].reading->sent.at(1).at(0).equal(at::tensor({1, 2, 3}, at::kLong)));
  // Of list 0 the keys 3 and 4, of list 1 still 2 and 3: from piece 0 the rows 2 and 3, from piece 1 row 4.
  EXPECT_TRUE(joined[0].reading->sent.at(2).at(0).equal(at::tensor({2, 3}, at::kLong)));
  EXPECT_TRUE(joined[1].reading->sent.at(2).at(0).equal(at::tensor({0}, at::kLong)));
  EXPECT_EQ(joined[2].reading->received.at(1).at(0).first, 4) << "behind its own two and those of piece 0";
  EXPECT_EQ(numbers_of(joined[2].plan.key_order), (Numbers{0, 1, 3, 4, 5, 0, 2, 3, 6, 6}));
  EXPECT_EQ(numbers_of(joined[2].plan.key_rows), (Numbers{5, 5, 3, 4, 0, 5, 2, 3, 1, 1}));
  // Counts of three lists from each to two others; lengths; a count, positions and memberships.
  EXPECT_EQ(bytes, 6 * 3 * 4 + 3 * 8 + 4 * ((1 + 3 + 4) + (1 + 2 + 3) + (1 + 1 + 1)));
}

TEST(JoinedLists, OfAKeyThatTheTokenBeforeHasChosenForBeginWithIt) {
  const ListRules rules{.lists = 2, .lookback = 70};
  std::vector<JoinedLists> joined(2);
  as_pieces({2, 4}, [&](const SequencePiece& piece) {
    std::vector<TokenLists> first;
    if (piece.number() == 1) first.push_back({.counts = {1}, .lists = {1}});
    joined[static_cast<std::size_t>(piece.number())] = join_lists(plan_of_piece({{1}, {}}, 2), rules, first, piece);
  });
  EXPECT_EQ(numbers_of(joined[1].plan.key_order), (Numbers{1, 3, 2}));
  EXPECT_EQ(numbers_of(joined[1].plan.key_rows), (Numbers{2, 1, 0}));
}

TEST(JoinedLists, AreMadeOfAPlanOfThePieceAlone) {
  as_pieces({3}, [&](const SequencePiece& piece) {
    const auto message = message_of<InputError>([&] {
      join_lists(plan_of_piece({{1}, {}}, 2), {.lists = 2, .lookback = 2}, {}, piece);
    });
    EXPECT_NE(message.find("over 2 tokens for the piece 0 to 3"), std::string::npos) << message;
  });
}

// A case of two heads over 300 tokens, all of them and in pieces.
constexpr std::int64_t kTokens = 300;
struct WholeCase {
  ListRules rules;
  support::CaseInputs inputs;
};

std::shared_ptr<Pattern> pattern_of(const support::PatternCase& each) {
  return make_pattern(each.group, {.kind = each.kind,
                                   .dim = 6,
                                   .place = {.seed = 7, .layer = 3},
                                   .options = at::TensorOptions().dtype(at::kDouble)});
}

std::optional<WholeCase> whole_case(const support::PatternCase& each) {
  const auto pattern = pattern_of(each);
  const auto rules = pattern->list_rules();
  if (!rules || !reads_by_list(*rules, pattern->key_list_kind() == KeyListKind::by_content)) return std::nullopt;
  return WholeCase{*rules, support::make_inputs(each, {.batch = 2, .tokens = kTokens, .dim = 6, .seed = 5})};
}

JoinedLists joined_piece(const support::PatternCase& each, const WholeCase& whole, const SequencePiece& piece) {
  const auto pattern = pattern_of(each);
  const std::int64_t begin = piece.begin();
  const std::int64_t tokens = piece.end() - begin;
  const auto own = [&](const at::Tensor& rows) { return rows.narrow(2, begin, tokens).contiguous(); };
  const Plan plan = pattern->plan({.layout = self_layout(2, each.group.heads, tokens, {}),
                                   .queries = own(whole.inputs.q),
                                   .keys = each.group.shared_query_key ? at::Tensor() : own(whole.inputs.k)});
  std::vector<TokenLists> first;
  if (each.group.key_shift == 1 && begin > 0) {
    const std::vector<std::int64_t> positions(2, begin - 1);
    first = pattern->token_lists(whole.inputs.q.narrow(2, begin - 1, 1).contiguous(), positions);
  }
  return join_lists(plan, whole.rules, first, piece);
}

// One piece; with one of a single token and ones shorter than a window; ragged.
const std::vector<Ends> kEveryEnds{{300}, {150, 300}, {1, 300}, {199, 203, 300}, {64, 128, 299, 300}};

TEST(JoinedLists, OfEveryPatternShowTheKeysOfTheWholeSequence) {
  int cases = 0;
  for (const support::PatternCase& each : support::pattern_cases(AttentionKind::causal_self)) {
    const auto whole = whole_case(each);
    if (!whole) continue;
    ++cases;
    const at::Tensor all = whole->inputs.plan.to_dense_counts();
    for (const Ends& ends : kEveryEnds) {
      as_pieces(ends, [&](const SequencePiece& piece) {
        const JoinedLists joined = joined_piece(each, *whole, piece);
        const Plan& plan = joined.plan;
        const std::int64_t tokens = piece.end() - piece.begin();
        at::Tensor expected = all.narrow(2, piece.begin(), tokens);
        const at::Tensor counts = plan.to_dense_counts();
        at::Tensor found = at::zeros({2, plan.heads, tokens, kTokens}, at::kInt);
        for (std::int64_t unit = 0; unit < plan.num_units(); ++unit) {
          std::vector<bool> done(static_cast<std::size_t>(plan.num_keys), false);
          for (std::int64_t group = 0; group < whole->rules.lists; ++group) {
            const GroupRange range = group_range(plan, unit * whole->rules.lists + group);
            for (std::int64_t key = range.k_begin; key < range.k_end; ++key) {
              const std::int32_t position = plan.key_order.data_ptr<std::int32_t>()[key];
              const std::int64_t row = plan.key_rows.defined() ? plan.key_rows.data_ptr<std::int32_t>()[key] : position;
              const at::Tensor column = counts[unit / plan.heads][unit % plan.heads].select(1, row);
              if (plan.key_rows.defined() && row == plan.num_keys - 1) {
                EXPECT_EQ(column.sum().item<std::int64_t>(), 0) << each.name << ": a row for nobody";
              } else if (!done[static_cast<std::size_t>(row)]) {
                found[unit / plan.heads][unit % plan.heads].select(1, position).add_(column);
              }
              done[static_cast<std::size_t>(row)] = true;
            }
          }
        }
        EXPECT_TRUE(found.equal(expected)) << each.name << ", piece " << piece.number() << " of " << ends.size();
      });
    }
  }
  EXPECT_GE(cases, 20) << "LSH and routing, every self rule, shared and separate keys, shifted";
}

// Outputs, and gradients of all tokens, of weighted outputs.
struct Differentiated {
  at::Tensor output, dq, dk, dv;
};

AttendOptions options_of(const support::PatternCase& each, at::ScalarType type) {
  AttendOptions options{.scale = 0.4,
                        .merge = each.group.merge,
                        .relative = RelativePosition::true_offset,
                        .relative_key = random_tensor({2 * 20 + 1, 6}, 4, type),
                        .dropout = {.probability = 0.2, .key = 77}};
  options.recency = at::full({each.group.heads}, 0.03, type);
  return options;
}

TEST(ListRows, HaveTheOutputsAndGradientsOfTheWhole) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    for (const support::PatternCase& each : support::pattern_cases(AttentionKind::causal_self)) {
      const auto whole = whole_case(each);
      if (!whole) continue;
      const std::int64_t heads = each.group.heads;
      const auto leaf = [](const at::Tensor& rows) { return rows.contiguous().clone().requires_grad_(true); };
      const auto draw = [&](std::int64_t dim, std::uint64_t seed) {
        return leaf(random_tensor({2, heads, kTokens, dim}, seed, type));
      };
      const at::Tensor q = draw(6, 1);
      const at::Tensor k = draw(6, 2);
      const at::Tensor v = draw(5, 3);
      const at::Tensor weights = random_tensor({2, heads, kTokens, 5}, 6, type);
      const AttendOptions options = options_of(each, type);
      const at::Tensor output = attend(q, k, v, whole->inputs.plan, options).output;
      torch::autograd::backward({output}, {weights});
      for (const Ends& ends : kEveryEnds) {
        as_pieces(ends, [&](const SequencePiece& piece) {
          const std::int64_t begin = piece.begin();
          const std::int64_t tokens = piece.end() - begin;
          const auto own = [&](const at::Tensor& rows) { return rows.detach().narrow(2, begin, tokens); };
          const JoinedLists joined = joined_piece(each, *whole, piece);
          const Differentiated rows{{}, leaf(own(q)), leaf(own(k)), leaf(own(v))};
          const StartedRows started = start_rows({rows.dk, rows.dv}, joined.reading);
          const KeyRows all = finish_rows(started);
          EXPECT_EQ(all.keys.size(2), joined.reading->rows);
          const at::Tensor part = attend(rows.dq, all.keys, all.values, joined.plan, options).output;
          torch::autograd::backward({part}, {own(weights).contiguous()});
          if (type == at::kFloat) {
            EXPECT_TRUE(at::equal(part.detach(), own(output).contiguous())) << each.name << ": the same bits";
          }
          const double tolerance = type == at::kFloat ? 2e-6 : 1e-12;
          const auto close = [&](const at::Tensor& found, const at::Tensor& expected) {
            return at::allclose(found, own(expected), tolerance, tolerance);
          };
          const std::string where = each.name + ", piece " + std::to_string(piece.number());
          EXPECT_TRUE(close(part, output)) << where;
          EXPECT_TRUE(close(rows.dq.grad(), q.grad())) << where;
          EXPECT_TRUE(close(rows.dk.grad(), k.grad())) << where;
          EXPECT_TRUE(close(rows.dv.grad(), v.grad())) << where;
        });
      }
    }
  }
}

TEST(ListRows, AreThoseOfThePiece) {
  as_pieces({2}, [](const SequencePiece& piece) {
    const JoinedLists joined = join_lists(plan_of_piece({{1}, {}}, 2), {.lists = 2, .lookback = 2}, {}, piece);
    const auto message = message_of<InputError>([&] {
      start_rows({at::zeros({1, 1, 2, 4}), at::zeros({1, 1, 3, 4})}, joined.reading);
    });
    EXPECT_NE(message.find("[batch, heads, 2, dim], the tokens 0 to 2"), std::string::npos) << message;
  });
}

}  // namespace
}  // namespace routing::list_rows_test
