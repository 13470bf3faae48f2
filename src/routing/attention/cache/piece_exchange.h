// How the readers of one long sequence talk to each other when each of them reads a piece of it, all at the same time.
//
// Attention knows what has to be said (sequence_pieces.h); how it gets there is for others to say
// (distributed/rank_pieces.h).
#pragma once

#include <ATen/ATen.h>

namespace routing {

class PieceExchange {
 public:
  PieceExchange() = default;
  virtual ~PieceExchange() = default;
  PieceExchange(const PieceExchange&) = delete;
  PieceExchange& operator=(const PieceExchange&) = delete;

  // The piece that is read here; pieces count from 0 in the order of time.
  virtual int piece() const = 0;
  virtual int pieces() const = 0;

  // [pieces, …]: the numbers of all, which have the same shape everywhere.
  virtual at::Tensor gather(const at::Tensor& numbers) = 0;
  // Words, int32 [n] of any n, for a later piece; and those that an earlier one sent here. Both may wait for the other
  // side.
  virtual void send(const at::Tensor& words, int later) = 0;
  virtual at::Tensor receive(int earlier) = 0;
};

}  // namespace routing
