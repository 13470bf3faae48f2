#include "routing/model/model_memory.h"

#include "routing/core/error.h"

#include <algorithm>

namespace routing {
namespace {

constexpr const char* kLastTokens = "last_tokens";

std::string name_of(std::size_t layer) {
  return "layer" + std::to_string(layer);
}

}  // namespace

at::Tensor ModelMemory::past(std::size_t layer) const {
  return layers.empty() ? at::Tensor() : layers.at(layer);
}

at::Tensor ModelMemory::moved_on(std::size_t layer, const at::Tensor& inputs) const {
  const at::Tensor before = past(layer);
  const at::Tensor seen = inputs.detach();
  const std::int64_t tokens = seen.size(1);
  // A copy, so that a part does not keep all of what it was a part of.
  if (!before.defined() || tokens >= length) {
    return seen.narrow(1, std::max<std::int64_t>(0, tokens - length), std::min(tokens, length)).clone();
  }
  const std::int64_t kept = std::min(before.size(1), length - tokens);
  return at::cat({before.narrow(1, before.size(1) - kept, kept), seen}, 1);
}

void ModelMemory::check(const ExperimentConfig& config, std::int64_t streams) const {
  require<InputError>(length >= 1, config.name, ": a memory of ", length, " tokens, but it must hold at least 1");
  if (layers.empty()) return;
  const auto count = static_cast<std::int64_t>(layers.size());
  const bool fits = count == config.model.layers && layers.front().dim() == 3 && layers.front().size(0) == streams &&
                    layers.front().size(2) == config.model.width && last_tokens.defined() &&
                    last_tokens.sizes() == at::IntArrayRef({streams});
  require<InputError>(fits, config.name, ": a memory of ", count, " layers, each ", layers.front().sizes(), ", but ",
                      streams, " texts are read by ", config.model.layers, " layers of width ", config.model.width,
                      "; each text needs its own memory, from its first segment on");
}

std::map<std::string, at::Tensor> ModelMemory::tensors() const {
  std::map<std::string, at::Tensor> all;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) all.emplace(name_of(layer), layers[layer]);
  if (last_tokens.defined()) all.emplace(kLastTokens, last_tokens);
  return all;
}

void ModelMemory::set_tensors(const std::map<std::string, at::Tensor>& tensors) {
  layers.clear();
  last_tokens = at::Tensor();
  for (std::size_t layer = 0; tensors.contains(name_of(layer)); ++layer) layers.push_back(tensors.at(name_of(layer)));
  if (const auto last = tensors.find(kLastTokens); last != tensors.end()) last_tokens = last->second;
  require<InputError>(tensors.size() == layers.size() + (last_tokens.defined() ? 1 : 0), "a memory of ", tensors.size(),
                      " tensors, of which ", layers.size(), " are layers in their order");
}

std::int64_t ModelMemory::bytes() const {
  std::int64_t total = 0;
  for (const auto& [name, tensor] : tensors()) total += static_cast<std::int64_t>(tensor.nbytes());
  return total;
}

}  // namespace routing
