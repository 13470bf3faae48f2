// The pieces of one sequence over the ranks of a run: rank r reads piece r (attention/cache/sequence_pieces.h).
#pragma once

#include "routing/attention/cache/piece_exchange.h"
#include "routing/distributed/group/rank_group.h"

#include <ATen/ATen.h>

#include <vector>

namespace routing {

// A message is preceded by its length, 8 bytes; an empty one is that alone. All is counted in the group's counts.
class RankPieces : public PieceExchange {
 public:
  explicit RankPieces(RankGroup& ranks);
  // The readers alone take part, ascending ranks of which this one must be one: rank readers[p] reads piece p.
  RankPieces(RankGroup& ranks, std::vector<int> readers);

  int piece() const override { return piece_; }
  int pieces() const override { return static_cast<int>(readers_.size()); }
  at::Tensor gather(const at::Tensor& numbers) override;
  void send(const at::Tensor& words, int later) override;
  at::Tensor receive(int earlier) override;

 private:
  int rank_of(int piece) const { return readers_.at(static_cast<std::size_t>(piece)); }

  RankGroup& ranks_;
  std::vector<int> readers_;
  int piece_ = 0;
};

}  // namespace routing
