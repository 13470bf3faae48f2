#include "routing/attention/routing/token_sample.h"

#include "routing/core/error.h"

#include <algorithm>

namespace routing {
namespace {

constexpr auto kByPriority = [](const auto& a, const auto& b) { return a.priority < b.priority; };

}  // namespace

void TokenSample::offer(std::uint64_t priority, std::span<const float> vector) {
  require<InputError>(vector.size() == dim_, "token sample: a vector of ", vector.size(),
                      " numbers was offered, but the others have ", dim_);
  if (capacity_ == 0) return;
  if (heap_.size() == capacity_) {
    if (priority >= heap_.front().priority) return;
    std::pop_heap(heap_.begin(), heap_.end(), kByPriority);
    heap_.pop_back();
  }
  heap_.push_back({priority, {vector.begin(), vector.end()}});
  std::push_heap(heap_.begin(), heap_.end(), kByPriority);
}

void TokenSample::merge(const TokenSample& other) {
  if (capacity_ == 0) {
    *this = other;
    return;
  }
  for (const Entry& entry : other.heap_) offer(entry.priority, entry.vector);
}

std::vector<TokenSample::Entry> TokenSample::entries() const {
  std::vector<Entry> sorted = heap_;
  std::sort(sorted.begin(), sorted.end(), kByPriority);
  return sorted;
}

std::vector<std::vector<float>> TokenSample::vectors() const {
  std::vector<Entry> sorted = entries();
  std::vector<std::vector<float>> list;
  list.reserve(sorted.size());
  for (Entry& entry : sorted) list.push_back(std::move(entry.vector));
  return list;
}

}  // namespace routing
