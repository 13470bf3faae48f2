#include "serve/page/probe_cache.h"

#include <algorithm>
#include <iterator>
#include <set>

namespace routing {
namespace {

// Tensors that share memory count once.
class CountedOnce {
 public:
  void add(const at::Tensor& tensor) {
    if (!tensor.defined() || !seen_.insert(tensor.storage().data()).second) return;
    bytes_ += static_cast<std::int64_t>(tensor.storage().nbytes());
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::set<const void*> seen_;
  std::int64_t bytes_ = 0;
};

}  // namespace

std::int64_t bytes_of(const ModelProbes& probes) {
  CountedOnce counted;
  for (const std::vector<GroupProbe>& layer : probes) {
    for (const GroupProbe& probe : layer) {
      const Plan& plan = probe.plan;
      for (const at::Tensor& tensor :
           {probe.queries, probe.keys, probe.relative_key, probe.recency, plan.query_order, plan.key_order, plan.groups,
            plan.unit_offsets, plan.query_index.offsets, plan.query_index.group, plan.query_index.rank,
            plan.query_choice, plan.key_choice}) {
        counted.add(tensor);
      }
    }
  }
  return counted.bytes();
}

void ProbeCache::drop(std::list<Entry>::iterator entry) {
  facts_.bytes -= entry->bytes;
  --facts_.texts;
  entries_.erase(entry);
}

std::shared_ptr<const ModelProbes> ProbeCache::get(std::uint64_t model, std::span<const std::int32_t> ids,
                                                   const std::function<ModelProbes()>& make) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.model == model && std::equal(entry.ids.begin(), entry.ids.end(), ids.begin(), ids.end());
  });
  if (found != entries_.end()) {
    ++facts_.hits;
    entries_.splice(entries_.begin(), entries_, found);
    return found->probes;
  }
  ++facts_.misses;
  Entry entry{.model = model,
              .ids = {ids.begin(), ids.end()},
              .bytes = 0,
              .probes = std::make_shared<const ModelProbes>(make())};
  entry.bytes = bytes_of(*entry.probes) + static_cast<std::int64_t>(ids.size_bytes());
  std::shared_ptr<const ModelProbes> probes = entry.probes;
  if (entry.bytes > limit_) return probes;
  while (facts_.bytes + entry.bytes > limit_) {
    drop(std::prev(entries_.end()));
    ++facts_.evictions;
  }
  facts_.bytes += entry.bytes;
  ++facts_.texts;
  entries_.push_front(std::move(entry));
  return probes;
}

void ProbeCache::forget(std::uint64_t model) {
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto next = std::next(entry);
    if (entry->model == model) drop(entry);
    entry = next;
  }
}

}  // namespace routing
