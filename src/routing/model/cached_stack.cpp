#include "routing/model/cached_stack.h"

#include "routing/core/error.h"
#include "routing/model/token_inputs.h"

#include <utility>

namespace routing {

std::string reason_against_cache(std::span<const Block> stack) {
  for (const Block& block : stack) {
    std::string reason = block->reason_against_cache();
    if (!reason.empty()) return reason;
  }
  return {};
}

ModelCache make_cache(std::span<const Block> stack) {
  std::vector<BlockCache> layers;
  for (const Block& block : stack) layers.push_back(block->make_cache());
  return ModelCache(std::move(layers));
}

CachedInputs cached_inputs(const std::string& where, const at::Tensor& previous, const ModelCache& cache,
                           std::span<const std::int64_t> sequences,
                           const std::function<std::int64_t(std::int64_t position, std::int64_t before)>& id_at) {
  check_tokens(where, previous, {});
  require<InputError>(previous.size(0) == static_cast<std::int64_t>(sequences.size()), where, ": tokens of ",
                      previous.size(0), " sequences, but ", sequences.size(), " are named");
  CachedInputs inputs{previous.contiguous().clone(), {}};
  auto* id = inputs.ids.data_ptr<std::int64_t>();
  for (const std::int64_t sequence : sequences) {
    const std::int64_t first = cache.length(sequence);
    for (std::int64_t token = 0; token < previous.size(1); ++token, ++id) {
      inputs.positions.push_back(first + token);
      *id = id_at(first + token, *id);
    }
  }
  return inputs;
}

at::Tensor forward_cached(std::span<const Block> stack, at::Tensor x, ModelCache& cache,
                          std::span<const std::int64_t> sequences, const ForwardContext& context) {
  for (std::size_t layer = 0; layer < stack.size(); ++layer) {
    x = stack[layer]->forward_cached(x, cache.layers().at(layer), sequences, context);
  }
  return x;
}

}  // namespace routing
