#include "routing/distributed/rank_pieces.h"

namespace routing {

void RankPieces::send(const at::Tensor& words, int later) {
  ranks_.send(at::full({1}, words.numel(), at::kLong), later);
  if (words.numel() > 0) ranks_.send(words, later);
}

at::Tensor RankPieces::receive(int earlier) {
  const at::Tensor length = at::zeros({1}, at::kLong);
  ranks_.receive(length, earlier);
  at::Tensor words = at::empty({length.item<std::int64_t>()}, at::kInt);
  if (words.numel() > 0) ranks_.receive(words, earlier);
  return words;
}

}  // namespace routing
