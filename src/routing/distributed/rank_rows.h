// The pieces of sequences that neighbouring ranks of a run train together (attention/pieces/sequence_piece.h).
#pragma once

#include "routing/attention/pieces/sequence_piece.h"
#include "routing/distributed/group/rank_group.h"

#include <ATen/ATen.h>

#include <memory>
#include <utility>

namespace routing {

// Of `pieces` ranks in a row, the first of which is a multiple of that, rank first + p computes piece p.
class RankRows : public RowExchange {
 public:
  RankRows(RankGroup& ranks, int pieces) : ranks_(ranks), pieces_(pieces) {}

  int piece() const override { return ranks_.rank() % pieces_; }
  int pieces() const override { return pieces_; }
  Arrival start_send(const at::Tensor& numbers, int piece) override {
    return arrival(ranks_.start_send(numbers, rank_of(piece)));
  }
  Arrival start_receive(const at::Tensor& numbers, int piece) override {
    return arrival(ranks_.start_receive(numbers, rank_of(piece)));
  }

 private:
  // Functions can be copied, so what they hold is shared.
  static Arrival arrival(std::shared_ptr<PendingWork> work) {
    return [work = std::move(work)] { work->wait(); };
  }
  int rank_of(int piece) const { return ranks_.rank() - ranks_.rank() % pieces_ + piece; }

  RankGroup& ranks_;
  int pieces_;
};

}  // namespace routing
