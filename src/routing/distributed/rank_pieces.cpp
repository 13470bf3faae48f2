#include "routing/distributed/rank_pieces.h"

#include "routing/core/error.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace routing {
namespace {

std::vector<int> all_of(const RankGroup& ranks) {
  std::vector<int> all(static_cast<std::size_t>(ranks.size()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace

RankPieces::RankPieces(RankGroup& ranks) : RankPieces(ranks, all_of(ranks)) {}

RankPieces::RankPieces(RankGroup& ranks, std::vector<int> readers) : ranks_(ranks), readers_(std::move(readers)) {
  const auto own = std::find(readers_.begin(), readers_.end(), ranks_.rank());
  require<InputError>(own != readers_.end() && std::is_sorted(readers_.begin(), readers_.end()), "rank ", ranks_.rank(),
                      " is not one of the ", readers_.size(), " readers of a sequence, in their order");
  piece_ = static_cast<int>(own - readers_.begin());
}

// Without collectives where others of the ranks take no part: each reader hands its numbers to each, the pairs in one
// order for all, so that nobody waits in a circle.
at::Tensor RankPieces::gather(const at::Tensor& numbers) {
  if (pieces() == ranks_.size()) return ranks_.gather(numbers);
  std::vector<at::Tensor> all;
  for (int piece = 0; piece < pieces(); ++piece) {
    all.push_back(piece == piece_ ? numbers.contiguous() : at::empty(numbers.sizes(), numbers.options()));
  }
  const at::Tensor& own = all.at(static_cast<std::size_t>(piece_));
  for (int low = 0; low < pieces(); ++low) {
    for (int high = low + 1; high < pieces(); ++high) {
      if (piece_ == low) {
        ranks_.send(own, rank_of(high));
        ranks_.receive(all.at(static_cast<std::size_t>(high)), rank_of(high));
      } else if (piece_ == high) {
        ranks_.receive(all.at(static_cast<std::size_t>(low)), rank_of(low));
        ranks_.send(own, rank_of(low));
      }
    }
  }
  return at::stack(all);
}

void RankPieces::send(const at::Tensor& words, int later) {
  ranks_.send(at::full({1}, words.numel(), at::kLong), rank_of(later));
  if (words.numel() > 0) ranks_.send(words, rank_of(later));
}

at::Tensor RankPieces::receive(int earlier) {
  const at::Tensor length = at::zeros({1}, at::kLong);
  ranks_.receive(length, rank_of(earlier));
  at::Tensor words = at::empty({length.item<std::int64_t>()}, at::kInt);
  if (words.numel() > 0) ranks_.receive(words, rank_of(earlier));
  return words;
}

}  // namespace routing
