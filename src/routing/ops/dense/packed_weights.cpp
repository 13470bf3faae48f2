#include "routing/ops/dense/packed_weights.h"

#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <functional>
#include <iterator>
#include <list>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace routing {
namespace {

using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
using WeakStorage = c10::weak_intrusive_ptr<c10::StorageImpl>;

// One entry each.
struct Key {
  const c10::TensorImpl* tensor = nullptr;
  WeightUse use = WeightUse::forward;
  kernels::DenseType type = kernels::DenseType::fp32;
  friend bool operator==(const Key&, const Key&) = default;
};
struct KeyHash {
  std::size_t operator()(const Key& key) const {
    const auto kind = 2 * static_cast<std::size_t>(key.use) + static_cast<std::size_t>(key.type);
    return std::hash<const c10::TensorImpl*>()(key.tensor) + kind;
  }
};

// Weak references keep the two objects' addresses from being used again while the entry lives, so that equal addresses
// mean the same objects.
struct Entry {
  WeakTensor tensor;
  WeakStorage storage;
  const void* data = nullptr;
  std::uint32_t version = 0;
  WeightUse use = WeightUse::forward;
  kernels::DenseType type = kernels::DenseType::fp32;
  kernels::PackedMatrix matrix = {};

  Key key() const { return {tensor._unsafe_get_target(), use, type}; }
  bool is_of(const at::Tensor& weight, WeightUse wanted_use, kernels::DenseType wanted_type) const {
    return key() == Key{weight.unsafeGetTensorImpl(), wanted_use, wanted_type};
  }
  bool is_current(const at::Tensor& weight) const {
    return storage._unsafe_get_target() == weight.storage().unsafeGetStorageImpl() && data == weight.data_ptr() &&
           version == static_cast<std::uint32_t>(weight._version());
  }
  bool is_dead() const { return tensor.expired() || storage.expired(); }
};

class PackedWeights {
 public:
  kernels::PackedMatrix get(const at::Tensor& weight, WeightUse use, kernels::DenseType type) {
    // Tensors made in inference mode have no version to tell a change by.
    if (weight.is_inference()) return pack(weight, use, type);
    {
      const std::lock_guard lock(mutex_);
      const auto found = index_.find({weight.unsafeGetTensorImpl(), use, type});
      if (found != index_.end() && found->second->is_current(weight)) {
        entries_.splice(entries_.begin(), entries_, found->second);
        return found->second->matrix;
      }
    }
    Entry made{.tensor = WeakTensor(weight.getIntrusivePtr()),
               .storage = weight.storage().getWeakStorageImpl(),
               .data = weight.data_ptr(),
               .version = static_cast<std::uint32_t>(weight._version()),
               .use = use,
               .type = type,
               .matrix = pack(weight, use, type)};
    kernels::PackedMatrix matrix = made.matrix;
    const std::lock_guard lock(mutex_);
    drop_if([&](const Entry& entry) { return entry.is_dead() || entry.is_of(weight, use, type); });
    entries_.push_front(std::move(made));
    index_[entries_.front().key()] = entries_.begin();
    shrink();
    return matrix;
  }

  void forget(const at::Tensor& weight) {
    const std::lock_guard lock(mutex_);
    drop_if([&](const Entry& entry) { return entry.key().tensor == weight.unsafeGetTensorImpl(); });
  }
  PackedWeightsState state() {
    const std::lock_guard lock(mutex_);
    drop_if([](const Entry& entry) { return entry.is_dead(); });
    return {entries_.size(), total_bytes()};
  }
  void set_limit(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    limit_ = bytes;
    shrink();
  }
  std::size_t limit() {
    const std::lock_guard lock(mutex_);
    return limit_;
  }

 private:
  static kernels::PackedMatrix pack(const at::Tensor& weight, WeightUse use, kernels::DenseType type) {
    const at::Tensor rows = weight.contiguous();
    const kernels::WeightShape shape{.out = rows.size(0), .in = rows.size(1)};
    const auto* values = rows.data_ptr<float>();
    return use == WeightUse::forward ? kernels::PackedMatrix::for_forward(values, shape, type)
                                     : kernels::PackedMatrix::for_data_gradient(values, shape, type);
  }

  template <class Condition>
  void drop_if(const Condition& condition) {
    for (auto entry = entries_.begin(); entry != entries_.end();) {
      if (!condition(*entry)) {
        ++entry;
        continue;
      }
      index_.erase(entry->key());
      entry = entries_.erase(entry);
    }
  }

  std::size_t total_bytes() const {
    std::size_t total = 0;
    for (const Entry& entry : entries_) total += entry.matrix.bytes();
    return total;
  }

  void shrink() {
    std::size_t total = total_bytes();
    while (total > limit_) {
      total -= entries_.back().matrix.bytes();
      index_.erase(entries_.back().key());
      entries_.pop_back();
    }
  }

  std::mutex mutex_;
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<Key, std::list<Entry>::iterator, KeyHash> index_;
  std::size_t limit_ = std::size_t{1} << 30U;
};

// Never destroyed: threads may still multiply while the program ends.
PackedWeights& packed_weights() {
  static auto* weights = new PackedWeights;
  return *weights;
}

}  // namespace

kernels::PackedMatrix packed_weight(const at::Tensor& weight, WeightUse use, kernels::DenseType type) {
  return packed_weights().get(weight, use, type);
}

void forget_packed_weight(const at::Tensor& weight) {
  packed_weights().forget(weight);
}

PackedWeightsState packed_weights_state() {
  return packed_weights().state();
}

void set_packed_weights_limit(std::size_t bytes) {
  packed_weights().set_limit(bytes);
}

std::size_t packed_weights_limit() {
  return packed_weights().limit();
}

}  // namespace routing
