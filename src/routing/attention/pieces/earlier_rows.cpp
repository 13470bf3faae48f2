#include "routing/attention/pieces/earlier_rows.h"

#include "routing/core/error.h"
#include "routing/ops/attend/visibility.h"
#include "routing/ops/one_derivative.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

namespace routing {
namespace {

// Positions of piece `from` that piece `to` reads.
struct Positions {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t count() const { return std::max<std::int64_t>(0, end - begin); }
};

struct Reading {
  SequencePiece piece;
  std::vector<std::int64_t> firsts;

  std::int64_t first() const { return firsts.at(static_cast<std::size_t>(piece.number())); }
  Positions rows(int from, int to) const {
    return {std::max(firsts.at(static_cast<std::size_t>(to)), piece.begin(from)), piece.end(from)};
  }
};

struct SavedReading : torch::CustomClassHolder {
  explicit SavedReading(Reading from) : reading(std::move(from)) {}
  Reading reading;
};

at::Tensor rows_before_and_own(const at::Tensor& rows, const Reading& reading) {
  const SequencePiece& piece = reading.piece;
  RowExchange& exchange = *piece.exchange;
  const int own = exchange.piece();
  const std::int64_t first = reading.first();
  at::Tensor all = rows.detach();
  if (first < piece.begin()) {
    all = at::empty({rows.size(0), rows.size(1), piece.end() - first, rows.size(3)}, rows.options());
    all.narrow(2, piece.begin() - first, rows.size(2)).copy_(rows);
  }
  for (int from = 0; from < own; ++from) {
    const Positions read = reading.rows(from, own);
    if (read.count() == 0) continue;
    const at::Tensor message = at::empty({rows.size(0), rows.size(1), read.count(), rows.size(3)}, rows.options());
    exchange.receive(message, from);
    all.narrow(2, read.begin - first, read.count()).copy_(message);
  }
  for (int to = own + 1; to < exchange.pieces(); ++to) {
    const Positions read = reading.rows(own, to);
    if (read.count() == 0) continue;
    exchange.send(rows.narrow(2, read.begin - piece.begin(), read.count()).contiguous(), to);
  }
  return all;
}

at::Tensor gradient_of_own(const at::Tensor& gradient, const Reading& reading) {
  const SequencePiece& piece = reading.piece;
  RowExchange& exchange = *piece.exchange;
  const int own = exchange.piece();
  const std::int64_t first = reading.first();
  const at::Tensor mine =
      gradient.narrow(2, piece.begin() - first, piece.end() - piece.begin()).clone(at::MemoryFormat::Contiguous);
  for (int to = exchange.pieces() - 1; to > own; --to) {
    const Positions read = reading.rows(own, to);
    if (read.count() == 0) continue;
    const at::Tensor message = at::empty({mine.size(0), mine.size(1), read.count(), mine.size(3)}, mine.options());
    exchange.receive(message, to);
    mine.narrow(2, read.begin - piece.begin(), read.count()).add_(message);
  }
  for (int from = own - 1; from >= 0; --from) {
    const Positions read = reading.rows(from, own);
    if (read.count() == 0) continue;
    exchange.send(gradient.narrow(2, read.begin - first, read.count()).contiguous(), from);
  }
  return mine;
}

class EarlierRows : public torch::autograd::Function<EarlierRows> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& rows, const Reading& reading) {
    context->saved_data["reading"] = c10::IValue::make_capsule(c10::make_intrusive<SavedReading>(reading));
    return rows_before_and_own(rows, reading);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    refuse_second_derivative("with_earlier_rows");
    const auto capsule = context->saved_data["reading"].toCapsule();
    return {gradient_of_own(gradients[0], static_cast<const SavedReading&>(*capsule).reading), at::Tensor()};
  }
};

}  // namespace

std::int64_t first_position_read(const ListRules& rules, std::int64_t key_shift, std::int64_t begin) {
  std::int64_t first = 0;
  if (rules.block > 0) {
    first = begin / rules.block * rules.block - rules.before;
  } else if (rules.lists == 1 && rules.period_keys.empty() && rules.lookback) {
    first = begin - *rules.lookback;
  }
  // Lists let whole tiles go.
  const std::int64_t lowest = first - key_shift - kernels::kAttendTile;
  return lowest <= 0 ? 0 : lowest / kernels::kAttendTile * kernels::kAttendTile;
}

std::vector<std::int64_t> first_positions_read(const ListRules& rules, std::int64_t key_shift,
                                               const SequencePiece& piece) {
  std::vector<std::int64_t> firsts;
  for (int number = 0; number < piece.exchange->pieces(); ++number) {
    firsts.push_back(first_position_read(rules, key_shift, piece.begin(number)));
  }
  return firsts;
}

at::Tensor with_earlier_rows(const at::Tensor& rows, const std::vector<std::int64_t>& firsts,
                             const SequencePiece& piece) {
  require<InputError>(rows.dim() == 4 && rows.size(2) == piece.end() - piece.begin(), "with_earlier_rows: rows are ",
                      rows.sizes(), ", but must be [batch, heads, ", piece.end() - piece.begin(), ", dim], the tokens ",
                      piece.begin(), " to ", piece.end(), " of their sequences");
  return EarlierRows::apply(rows, Reading{.piece = piece, .firsts = firsts});
}

}  // namespace routing
