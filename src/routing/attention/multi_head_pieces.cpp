// MultiHeadAttention over a piece of every sequence, whose other pieces are computed elsewhere at the same time: what
// is read of earlier ones, and in which order, so that what travels does so behind something else.
#include "routing/attention/multi_head.h"
#include "routing/attention/pieces/earlier_rows.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace routing {

MultiHeadAttentionImpl::PieceRows MultiHeadAttentionImpl::rows_over_pieces(const Group& group, const GroupRows& mine,
                                                                           const SequencePiece& piece) const {
  const std::vector<std::int64_t> firsts =
      first_positions_read(group.pattern->list_rules().value(), group.config.key_shift, piece);
  const std::int64_t first = firsts.at(static_cast<std::size_t>(piece.number()));
  const at::Tensor queries = prepared_queries(group, mine.q);
  if (group.config.shared_query_key) {
    const at::Tensor all = with_earlier_rows(queries, firsts, piece);
    return {{all, shared_keys(group, all)}, with_earlier_rows(mine.v, firsts, piece), first};
  }
  return {{queries, with_earlier_rows(prepared_keys(group, mine.k), firsts, piece)},
          with_earlier_rows(mine.v, firsts, piece),
          first};
}

// Queries and keys as the group attends with them; with shifted keys those of the first token come from the piece
// before.
MultiHeadAttentionImpl::ListedRows MultiHeadAttentionImpl::listed_rows(const Group& group, const GroupRows& mine,
                                                                       const SequencePiece& piece) const {
  if (group.config.key_shift == 0) {
    const QueryKey chosen = prepare(group, {mine.q, mine.k});
    return {.chosen = chosen, .attended = attended_rows(group, chosen), .values = mine.v, .last_before = {}};
  }
  std::vector<std::int64_t> firsts;
  for (int number = 0; number < piece.exchange->pieces(); ++number) {
    firsts.push_back(std::max<std::int64_t>(0, piece.begin(number) - 1));
  }
  const at::Tensor queries = with_earlier_rows(prepared_queries(group, mine.q), firsts, piece);
  Attended attended = attended_rows(group, {queries, shared_keys(group, queries)});
  for (at::Tensor* rows : {&attended.query_key.q, &attended.query_key.k, &attended.chosen_queries}) {
    *rows = own_rows(*rows, &piece);
  }
  const at::Tensor own = own_rows(queries, &piece);
  return {.chosen = {own, own},
          .attended = attended,
          .values = mine.v,
          .last_before = piece.begin() > 0 ? queries.narrow(2, 0, 1).detach() : at::Tensor()};
}

// The plan of the piece alone, joined with the keys of earlier ones that its queries read.
void MultiHeadAttentionImpl::plan_lists(std::size_t index, const ListedRows& rows, AttentionState& state) {
  const Group& group = groups_[index];
  const SequencePiece& piece = *state.piece;
  const at::Tensor choosing = choosing_rows(group, rows.chosen).detach();
  const Plan own = group.pattern->plan({.layout = self_layout(choosing.size(0), choosing.size(1), choosing.size(2), {}),
                                        .queries = choosing,
                                        .keys = group.config.shared_query_key ? at::Tensor() : rows.chosen.k.detach(),
                                        .training = is_training(),
                                        .step = state.step,
                                        .sample_ids = state.sample_ids,
                                        .first_position = piece.begin()});
  std::vector<TokenLists> first_keys;
  if (rows.last_before.defined()) {
    const std::vector<std::int64_t> positions(static_cast<std::size_t>(choosing.size(0)), piece.begin() - 1);
    first_keys = group.pattern->token_lists(rows.last_before.contiguous(), positions);
  }
  JoinedLists joined = join_lists(own, group.pattern->list_rules().value(), first_keys, piece);
  state.plans[index] = std::move(joined.plan);
  state.readings[index] = std::move(joined.reading);
}

// Rows of lists travel while heads that need none of them attend, and in the backward pass, which goes the other way
// round, so do their gradients. What is read is let go of as soon as it has been: attention keeps rounded rows.
std::vector<at::Tensor> MultiHeadAttentionImpl::attend_piece(std::vector<GroupRows> rows, const at::Tensor& input,
                                                             AttentionState& state) {
  const SequencePiece& piece = *state.piece;
  std::vector<std::optional<PieceRows>> read(groups_.size());
  std::vector<std::optional<ListedRows>> listed(groups_.size());
  for (std::size_t index = 0; index < groups_.size(); ++index) {
    const Group& group = groups_[index];
    const GroupRows mine = std::exchange(rows[index], {});
    const bool by_content = group.pattern->key_list_kind() == KeyListKind::by_content;
    if (reads_by_list(group.pattern->list_rules().value(), by_content)) {
      listed[index] = listed_rows(group, mine, piece);
    } else {
      read[index] = rows_over_pieces(group, mine, piece);
    }
  }
  std::vector<StartedRows> started(groups_.size());
  for (std::size_t index = 0; index < groups_.size(); ++index) {
    if (!listed[index]) continue;
    ListedRows& own = *listed[index];
    if (!state.reuse_plans) plan_lists(index, own, state);
    started[index] =
        start_rows({std::exchange(own.attended.query_key.k, {}), std::exchange(own.values, {})}, state.readings[index]);
  }
  std::vector<at::Tensor> outputs(groups_.size());
  for (std::size_t index = 0; index < groups_.size(); ++index) {
    if (!read[index]) continue;
    const TokenLayout layout = layout_for(groups_[index], input, state);
    Prepared prepared = prepare_group(index, *std::exchange(read[index], std::nullopt), state, layout);
    outputs[index] = attend_group(index, std::move(prepared), state);
  }
  for (std::size_t index = 0; index < groups_.size(); ++index) {
    if (!listed[index]) continue;
    const Group& group = groups_[index];
    const ListedRows own = *std::exchange(listed[index], std::nullopt);
    KeyRows all = finish_rows(std::exchange(started[index], {}));
    add_auxiliary_loss(index, choosing_rows(group, {own.attended.chosen_queries, own.chosen.k}),
                       group.config.shared_query_key ? at::Tensor() : own.chosen.k, state);
    Prepared prepared{{own.attended.query_key.q, std::exchange(all.keys, {})}, std::exchange(all.values, {})};
    outputs[index] = attend_group(index, std::move(prepared), state);
  }
  return outputs;
}

}  // namespace routing
