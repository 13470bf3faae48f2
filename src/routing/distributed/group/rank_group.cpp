#include "routing/distributed/group/rank_group.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace routing {
namespace {

class NothingPending : public PendingWork {
 public:
  void wait() override {}
};

at::Tensor bytes_of(const std::string& text, std::int64_t length) {
  at::Tensor bytes = at::zeros({length}, at::kByte);
  std::memcpy(bytes.data_ptr(), text.data(), text.size());
  return bytes;
}

std::string text_of(const at::Tensor& bytes, std::int64_t length) {
  return {static_cast<const char*>(bytes.data_ptr()), static_cast<std::size_t>(length)};
}

at::Tensor length_of(const std::string& text) {
  return at::full({}, static_cast<std::int64_t>(text.size()), at::kLong);
}

}  // namespace

RankGroup::RankGroup(int rank, int size, std::shared_ptr<RankStatus> status)
    : rank_(rank), size_(size), status_(std::move(status)) {}

std::vector<std::string> RankGroup::gather_texts(const std::string& text) {
  const at::Tensor lengths = gather(length_of(text));
  const auto longest = std::max<std::int64_t>(1, lengths.max().item<std::int64_t>());
  const at::Tensor all = gather(bytes_of(text, longest));
  std::vector<std::string> texts;
  for (std::int64_t rank = 0; rank < size_; ++rank) {
    texts.push_back(text_of(all[rank].contiguous(), lengths[rank].item<std::int64_t>()));
  }
  return texts;
}

std::string RankGroup::broadcast_text(const std::string& text, int from) {
  const at::Tensor length = length_of(text);
  broadcast(length, from);
  const auto size = length.item<std::int64_t>();
  const at::Tensor bytes = rank_ == from ? bytes_of(text, std::max<std::int64_t>(1, size))
                                         : at::zeros({std::max<std::int64_t>(1, size)}, at::kByte);
  broadcast(bytes, from);
  return text_of(bytes, size);
}

void RankGroup::barrier() {
  sum(at::zeros({1}, at::kLong));
}

std::unique_ptr<PendingWork> OneRank::start_sum(std::vector<at::Tensor> /*tensors*/) {
  return std::make_unique<NothingPending>();
}

void OneRank::broadcast(const at::Tensor& /*tensor*/, int from) {
  require<InputError>(from == 0, "a broadcast from rank ", from, ", but there is only rank 0");
}

at::Tensor OneRank::gather(const at::Tensor& tensor) {
  return tensor.unsqueeze(0).clone();
}

std::unique_ptr<PendingWork> OneRank::start_send(const at::Tensor& /*tensor*/, int to) {
  throw InputError("a tensor for rank " + std::to_string(to) + ", but there is only rank 0");
}

std::unique_ptr<PendingWork> OneRank::start_receive(const at::Tensor& /*tensor*/, int from) {
  throw InputError("a tensor of rank " + std::to_string(from) + ", but there is only rank 0");
}

std::int64_t bytes_of_sum(std::int64_t bytes, int ranks) {
  return 2 * bytes * (ranks - 1) / ranks;
}

}  // namespace routing
