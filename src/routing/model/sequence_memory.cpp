// The part of SequenceModel that remembers: what a layer keeps of a segment, and what is made of what it does not.
#include "routing/core/error.h"
#include "routing/model/model_memory.h"
#include "routing/model/sequence_model.h"

#include <algorithm>
#include <utility>

namespace routing {

void SequenceModel::remember_layer(std::size_t layer, const at::Tensor& inputs, const ForwardContext& context,
                                   ModelMemory& next, Hidden& hidden) const {
  const ModelMemory& before = *context.memory;
  const MemoryConfig& memory = config_.memory;
  const bool compresses = memory.compressed > 0;
  ModelMemory::Next moved = before.moved_on(layer, inputs, compresses ? memory.rate : 0);
  next.layers.push_back(std::move(moved.rows));
  if (!compresses) return;
  const Block& block = layers_[layer];
  at::Tensor places = before.compressed.empty() ? inputs.detach().narrow(1, 0, 0) : before.compressed.at(layer);
  at::Tensor fresh;
  if (moved.leaving.defined()) {
    // Usage is that of all keys, in their order: compressed ones first.
    const at::Tensor& usage = states_[layer].self.usage;
    fresh = block->compress(moved.leaving,
                            usage.defined() ? usage.narrow(1, places.size(1), moved.leaving.size(1)) : at::Tensor());
    places = at::cat({places, fresh.detach()}, 1);
    const std::int64_t most = std::min(places.size(1), memory.compressed);
    places = places.narrow(1, places.size(1) - most, most).clone();
  }
  next.compressed.push_back(std::move(places));
  if (is_training() && at::GradMode::is_enabled() && memory.compression == Compression::convolution) {
    const at::Tensor lost = block->reconstruction(inputs.detach(), moved.leaving, fresh, context);
    hidden.reconstruction = hidden.reconstruction.defined() ? hidden.reconstruction + lost : lost;
  }
}

void SequenceModel::remember(const at::Tensor& tokens, const ForwardContext& context) {
  require<InputError>(context.memory != nullptr, config_.name, ": a segment to remember, but there is no memory");
  const at::NoGradGuard no_gradient;
  hidden({}, tokens, {}, context);
}

}  // namespace routing
