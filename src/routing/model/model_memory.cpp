#include "routing/model/model_memory.h"

#include "routing/core/error.h"

#include <algorithm>

namespace routing {
namespace {

constexpr const char* kLastTokens = "last_tokens";
const std::string kCompressed = "compressed.";

std::string name_of(std::size_t layer) {
  return "layer" + std::to_string(layer);
}

}  // namespace

at::Tensor ModelMemory::past(std::size_t layer) const {
  if (layers.empty()) return {};
  if (compressed.empty() || compressed.at(layer).size(1) == 0) return layers.at(layer);
  return at::cat({compressed.at(layer), layers.at(layer)}, 1);
}

ModelMemory::Next ModelMemory::moved_on(std::size_t layer, const at::Tensor& inputs, std::int64_t rate) const {
  const at::Tensor seen = inputs.detach();
  const at::Tensor all = layers.empty() ? seen : at::cat({layers.at(layer), seen}, 1);
  std::int64_t leaving = std::max<std::int64_t>(0, all.size(1) - length);
  if (rate > 0) leaving -= leaving % rate;
  // Copies, so that a part does not keep all of what it was a part of.
  Next next{.rows = all.narrow(1, leaving, all.size(1) - leaving).clone()};
  if (rate > 0 && leaving > 0) next.leaving = all.narrow(1, 0, leaving);
  return next;
}

void ModelMemory::check(const ExperimentConfig& config, std::int64_t streams) const {
  require<InputError>(length >= 1, config.name, ": a memory of ", length, " tokens, but it must hold at least 1");
  if (layers.empty()) return;
  const auto count = static_cast<std::int64_t>(layers.size());
  const bool fits = count == config.model.layers && layers.front().dim() == 3 && layers.front().size(0) == streams &&
                    layers.front().size(2) == config.model.width && last_tokens.defined() &&
                    last_tokens.sizes() == at::IntArrayRef({streams}) &&
                    (compressed.empty() || compressed.size() == layers.size());
  require<InputError>(fits, config.name, ": a memory of ", count, " layers, each ", layers.front().sizes(), ", but ",
                      streams, " texts are read by ", config.model.layers, " layers of width ", config.model.width,
                      "; each text needs its own memory, from its first segment on");
}

std::map<std::string, at::Tensor> ModelMemory::tensors() const {
  std::map<std::string, at::Tensor> all;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) all.emplace(name_of(layer), layers[layer]);
  for (std::size_t layer = 0; layer < compressed.size(); ++layer) {
    all.emplace(kCompressed + name_of(layer), compressed[layer]);
  }
  if (last_tokens.defined()) all.emplace(kLastTokens, last_tokens);
  return all;
}

void ModelMemory::set_tensors(const std::map<std::string, at::Tensor>& tensors) {
  const auto all_of = [&](const std::string& prefix) {
    std::vector<at::Tensor> found;
    for (auto at = tensors.find(prefix + name_of(0)); at != tensors.end();
         at = tensors.find(prefix + name_of(found.size()))) {
      found.push_back(at->second);
    }
    return found;
  };
  layers = all_of("");
  compressed = all_of(kCompressed);
  last_tokens = at::Tensor();
  if (const auto last = tensors.find(kLastTokens); last != tensors.end()) last_tokens = last->second;
  require<InputError>(tensors.size() == layers.size() + compressed.size() + (last_tokens.defined() ? 1 : 0),
                      "a memory of ", tensors.size(), " tensors, of which ", layers.size(), " and ", compressed.size(),
                      " are layers in their order");
}

std::int64_t ModelMemory::bytes() const {
  std::int64_t total = 0;
  for (const auto& [name, tensor] : tensors()) total += static_cast<std::int64_t>(tensor.nbytes());
  return total;
}

}  // namespace routing
