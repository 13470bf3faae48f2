#include "routing/attention/pieces/list_rows.h"

#include "routing/core/error.h"
#include "routing/ops/one_derivative.h"

#include <torch/csrc/autograd/custom_function.h>

#include <utility>

namespace routing {

// What both ends of a transfer know of it. A forward pass makes its own.
class RowTransfer {
 public:
  RowTransfer(std::shared_ptr<const ListReading> reading, const KeyRows& own)
      : reading_(std::move(reading)),
        heads_(own.keys.size(1)),
        key_dim_(own.keys.size(3)),
        value_dim_(own.values.size(3)),
        options_(own.keys.options().requires_grad(false)) {}

  // ---- forward

  void start(const KeyRows& own) {
    for (int from = 0; from < number(); ++from) expect(from, rows_from(from));
    for (int to = number() + 1; to < pieces(); ++to) {
      const std::vector<at::Tensor>& tokens = reading_->sent.at(static_cast<std::size_t>(to));
      const at::Tensor message = room(rows_to(to));
      std::int64_t begin = 0;
      for (std::size_t unit = 0; unit < tokens.size(); ++unit) {
        const std::int64_t count = tokens[unit].numel();
        const KeyRows part = part_of(message, begin, count);
        part.keys.copy_(of_unit(own.keys, unit).index_select(0, tokens[unit]));
        part.values.copy_(of_unit(own.values, unit).index_select(0, tokens[unit]));
        begin += count;
      }
      send(message, to);
    }
  }

  KeyRows finish(const KeyRows& own) {
    wait();
    if (number() == 0) return {own.keys.detach(), own.values.detach()};
    const auto with_room = [&](const at::Tensor& rows) {
      at::Tensor all = at::empty({rows.size(0), heads_, reading_->rows, rows.size(3)}, options_);
      all.narrow(2, 0, rows.size(2)).copy_(rows);
      // Heads for which fewer rows came than for others, and the places that nobody reads.
      all.narrow(2, rows.size(2), reading_->rows - rows.size(2)).zero_();
      return all;
    };
    const KeyRows all{with_room(own.keys), with_room(own.values)};
    for (int from = 0; from < number(); ++from) {
      for_each_received(from, [&](std::size_t unit, const ListReading::Rows& place, std::int64_t begin) {
        const KeyRows part = part_of(messages_.at(static_cast<std::size_t>(from)), begin, place.count);
        of_unit(all.keys, unit).narrow(0, place.first, place.count).copy_(part.keys);
        of_unit(all.values, unit).narrow(0, place.first, place.count).copy_(part.values);
      });
    }
    messages_.clear();
    return all;
  }

  // ---- backward

  // Of all rows that were read; the own ones stay.
  KeyRows start_back(const KeyRows& gradient) {
    for (int to = pieces() - 1; to > number(); --to) expect(to, rows_to(to));
    for (int from = number() - 1; from >= 0; --from) {
      const at::Tensor message = room(rows_from(from));
      for_each_received(from, [&](std::size_t unit, const ListReading::Rows& place, std::int64_t begin) {
        const KeyRows part = part_of(message, begin, place.count);
        part.keys.copy_(of_unit(gradient.keys, unit).narrow(0, place.first, place.count));
        part.values.copy_(of_unit(gradient.values, unit).narrow(0, place.first, place.count));
      });
      send(message, from);
    }
    const std::int64_t own = reading_->piece.end() - reading_->piece.begin();
    // Copies: gradients of other pieces are added to them, and they let go of those of rows that came.
    const auto stay = [&](const at::Tensor& rows) {
      return rows.narrow(2, 0, own).clone(at::MemoryFormat::Contiguous);
    };
    return {stay(gradient.keys), stay(gradient.values)};
  }

  // Adds to what start_back() has returned.
  void finish_back(const KeyRows& own) {
    wait();
    for (int to = pieces() - 1; to > number(); --to) {
      const std::vector<at::Tensor>& tokens = reading_->sent.at(static_cast<std::size_t>(to));
      std::int64_t begin = 0;
      for (std::size_t unit = 0; unit < tokens.size() && rows_to(to) > 0; ++unit) {
        const std::int64_t count = tokens[unit].numel();
        const KeyRows part = part_of(messages_.at(static_cast<std::size_t>(to)), begin, count);
        of_unit(own.keys, unit).index_add_(0, tokens[unit], part.keys);
        of_unit(own.values, unit).index_add_(0, tokens[unit], part.values);
        begin += count;
      }
    }
    messages_.clear();
  }

  at::Tensor no_gradient(std::int64_t batch, std::int64_t tokens, std::int64_t dim) const {
    return at::zeros({batch, heads_, tokens, dim}, options_);
  }

 private:
  int number() const { return reading_->piece.number(); }
  int pieces() const { return reading_->piece.exchange->pieces(); }
  at::Tensor of_unit(const at::Tensor& rows, std::size_t unit) const {
    const auto index = static_cast<std::int64_t>(unit);
    return rows.select(0, index / heads_).select(0, index % heads_);
  }
  // A row of a message is a key and its value.
  at::Tensor room(std::int64_t rows) const { return at::empty({rows, key_dim_ + value_dim_}, options_); }
  KeyRows part_of(const at::Tensor& message, std::int64_t begin, std::int64_t count) const {
    const at::Tensor rows = message.narrow(0, begin, count);
    return {rows.narrow(1, 0, key_dim_), rows.narrow(1, key_dim_, value_dim_)};
  }
  std::int64_t rows_to(int piece) const {
    std::int64_t rows = 0;
    for (const at::Tensor& tokens : reading_->sent.at(static_cast<std::size_t>(piece))) rows += tokens.numel();
    return rows;
  }
  std::int64_t rows_from(int piece) const {
    std::int64_t rows = 0;
    for (const ListReading::Rows& place : reading_->received.at(static_cast<std::size_t>(piece))) rows += place.count;
    return rows;
  }
  template <class Visit>
  void for_each_received(int from, const Visit& visit) const {
    const std::vector<ListReading::Rows>& places = reading_->received.at(static_cast<std::size_t>(from));
    std::int64_t begin = 0;
    for (std::size_t unit = 0; unit < places.size(); ++unit) {
      if (places[unit].count == 0) continue;
      visit(unit, places[unit], begin);
      begin += places[unit].count;
    }
  }

  void expect(int piece, std::int64_t rows) {
    messages_.resize(static_cast<std::size_t>(pieces()));
    if (rows == 0) return;
    at::Tensor& message = messages_.at(static_cast<std::size_t>(piece));
    message = room(rows);
    arrivals_.push_back(reading_->piece.exchange->start_receive(message, piece));
  }
  void send(const at::Tensor& message, int piece) {
    if (message.size(0) > 0) arrivals_.push_back(reading_->piece.exchange->start_send(message, piece));
  }
  void wait() {
    for (const RowExchange::Arrival& arrival : arrivals_) arrival();
    arrivals_.clear();
  }

  std::shared_ptr<const ListReading> reading_;
  std::int64_t heads_, key_dim_, value_dim_;
  at::TensorOptions options_;
  std::vector<at::Tensor> messages_;  // by piece: what is expected
  std::vector<RowExchange::Arrival> arrivals_;
};

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// A node cannot own what is not an object of torch's: this is one, and it lives as long as the graph.
struct SavedTransfer : torch::CustomClassHolder {
  explicit SavedTransfer(std::shared_ptr<RowTransfer> from) : transfer(std::move(from)) {}
  std::shared_ptr<RowTransfer> transfer;
};

void save(AutogradContext* context, const KeyRows& rows, const std::shared_ptr<RowTransfer>& transfer) {
  context->saved_data["transfer"] = c10::IValue::make_capsule(c10::make_intrusive<SavedTransfer>(transfer));
  context->saved_data["sizes"] =
      std::vector<std::int64_t>{rows.keys.size(0), rows.keys.size(2), rows.keys.size(3), rows.values.size(3)};
}

RowTransfer& saved_transfer(AutogradContext* context) {
  const auto capsule = context->saved_data["transfer"].toCapsule();
  return *static_cast<const SavedTransfer&>(*capsule).transfer;
}

// Rows that nobody read have none.
KeyRows gradients_of(AutogradContext* context, const variable_list& gradients) {
  const std::vector<std::int64_t> sizes = context->saved_data["sizes"].toIntVector();
  const RowTransfer& transfer = saved_transfer(context);
  return {gradients[0].defined() ? gradients[0] : transfer.no_gradient(sizes[0], sizes[1], sizes[2]),
          gradients[1].defined() ? gradients[1] : transfer.no_gradient(sizes[0], sizes[1], sizes[3])};
}

class StartRows : public torch::autograd::Function<StartRows> {
 public:
  static variable_list forward(AutogradContext* context, const at::Tensor& keys, const at::Tensor& values,
                               const std::shared_ptr<RowTransfer>& transfer) {
    save(context, {keys, values}, transfer);
    transfer->start({keys, values});
    return {keys.detach(), values.detach()};
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    refuse_second_derivative("start_rows");
    KeyRows own = gradients_of(context, gradients);
    saved_transfer(context).finish_back(own);
    return {own.keys, own.values, at::Tensor()};
  }
};

class FinishRows : public torch::autograd::Function<FinishRows> {
 public:
  static variable_list forward(AutogradContext* context, const at::Tensor& keys, const at::Tensor& values,
                               const std::shared_ptr<RowTransfer>& transfer) {
    const KeyRows all = transfer->finish({keys, values});
    save(context, all, transfer);
    return {all.keys, all.values};
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    refuse_second_derivative("finish_rows");
    const KeyRows own = saved_transfer(context).start_back(gradients_of(context, gradients));
    return {own.keys, own.values, at::Tensor()};
  }
};

}  // namespace

StartedRows start_rows(const KeyRows& own, const std::shared_ptr<const ListReading>& reading) {
  const SequencePiece& piece = reading->piece;
  for (const at::Tensor* rows : {&own.keys, &own.values}) {
    require<InputError>(rows->dim() == 4 && rows->size(2) == piece.end() - piece.begin(), "start_rows: rows are ",
                        rows->sizes(), ", but must be [batch, heads, ", piece.end() - piece.begin(),
                        ", dim], the tokens ", piece.begin(), " to ", piece.end(), " of their sequences");
  }
  auto transfer = std::make_shared<RowTransfer>(reading, own);
  const variable_list rows = StartRows::apply(own.keys, own.values, transfer);
  return {.own = {rows[0], rows[1]}, .transfer = std::move(transfer)};
}

KeyRows finish_rows(const StartedRows& started) {
  const variable_list rows = FinishRows::apply(started.own.keys, started.own.values, started.transfer);
  return {rows[0], rows[1]};
}

}  // namespace routing
