// The pieces of one sequence over the ranks of a run: rank r reads piece r (attention/cache/sequence_pieces.h).
#pragma once

#include "routing/attention/cache/piece_exchange.h"
#include "routing/distributed/group/rank_group.h"

#include <ATen/ATen.h>

namespace routing {

// A message is preceded by its length, 8 bytes; an empty one is that alone. All is counted in the group's counts.
class RankPieces : public PieceExchange {
 public:
  explicit RankPieces(RankGroup& ranks) : ranks_(ranks) {}

  int piece() const override { return ranks_.rank(); }
  int pieces() const override { return ranks_.size(); }
  at::Tensor gather(const at::Tensor& numbers) override { return ranks_.gather(numbers); }
  void send(const at::Tensor& words, int later) override;
  at::Tensor receive(int earlier) override;

 private:
  RankGroup& ranks_;
};

}  // namespace routing
