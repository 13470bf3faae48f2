// A piece of every sequence of a batch, whose other pieces are computed elsewhere at the same time, to be trained.
//
// Attention knows what has to be said (earlier_rows.h); how it gets there is for others to say
// (distributed/rank_rows.h).
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace routing {

// The way to whoever computes the other pieces. What one side sends the other receives, in the same order and of the
// same shape; both may wait for each other.
class RowExchange {
 public:
  RowExchange() = default;
  virtual ~RowExchange() = default;
  RowExchange(const RowExchange&) = delete;
  RowExchange& operator=(const RowExchange&) = delete;

  // The piece that is computed here; pieces count from 0 in the order of time.
  virtual int piece() const = 0;
  virtual int pieces() const = 0;

  // Contiguous numbers on the CPU, on their way until what is returned was called, once, and has come back. What goes
  // from one piece to another arrives in the order in which it was started.
  using Arrival = std::function<void()>;
  virtual Arrival start_send(const at::Tensor& numbers, int piece) = 0;
  virtual Arrival start_receive(const at::Tensor& numbers, int piece) = 0;
  void send(const at::Tensor& numbers, int piece) { start_send(numbers, piece)(); }
  void receive(const at::Tensor& numbers, int piece) { start_receive(numbers, piece)(); }
};

struct SequencePiece {
  RowExchange* exchange = nullptr;
  std::vector<std::int64_t> ends = {};  // positions after the last token of each piece, ascending
  at::Tensor before = {};               // int64 [batch]: the tokens before this piece; undefined where there are none

  int number() const { return exchange->piece(); }
  std::int64_t end(int piece) const { return ends.at(static_cast<std::size_t>(piece)); }
  std::int64_t begin(int piece) const { return piece == 0 ? 0 : end(piece - 1); }
  std::int64_t begin() const { return begin(number()); }
  std::int64_t end() const { return end(number()); }
};

// The first position of a piece that trains, or 0 of a whole sequence.
inline std::int64_t first_position(const SequencePiece* piece) {
  return piece == nullptr ? 0 : piece->begin();
}

}  // namespace routing
