#include "routing/distributed/optimizer_shards.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

namespace routing {
namespace {

using Json = nlohmann::ordered_json;

// Names, shapes and types, so that others can make room.
std::string describe(const std::map<std::string, at::Tensor>& tensors) {
  Json list = Json::array();
  for (const auto& [name, tensor] : tensors) {
    list.push_back({{"name", name}, {"shape", tensor.sizes().vec()}, {"type", static_cast<int>(tensor.scalar_type())}});
  }
  return list.dump();
}

at::Tensor make_room(const Json& description) {
  return at::empty(description.at("shape").get<std::vector<std::int64_t>>(),
                   static_cast<at::ScalarType>(description.at("type").get<int>()));
}

}  // namespace

std::vector<int> spread_parameters(const std::vector<std::int64_t>& sizes, int ranks) {
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return sizes[a] > sizes[b]; });
  std::vector<std::int64_t> load(static_cast<std::size_t>(ranks), 0);
  std::vector<int> owner(sizes.size(), 0);
  for (const std::size_t i : order) {
    const auto least = std::min_element(load.begin(), load.end());
    owner[i] = static_cast<int>(least - load.begin());
    *least += sizes[i];
  }
  return owner;
}

OptimizerShards::OptimizerShards(RankGroup& ranks, std::vector<NamedParameter> parameters)
    : ranks_(ranks), parameters_(std::move(parameters)) {
  std::vector<std::int64_t> sizes;
  for (const NamedParameter& parameter : parameters_) sizes.push_back(parameter.value.numel());
  owner_ = spread_parameters(sizes, ranks.size());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (owner_[i] == ranks.rank()) own_.push_back(parameters_[i]);
  }
}

void OptimizerShards::share_values() const {
  const at::NoGradGuard no_gradient;
  for (int from = 0; from < ranks_.size(); ++from) {
    std::vector<at::Tensor> values;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (owner_[i] == from) values.push_back(parameters_[i].value.detach().flatten());
    }
    if (values.empty()) continue;
    const at::Tensor all = at::cat(values);
    ranks_.broadcast(all, from);
    if (from == ranks_.rank()) continue;
    std::int64_t place = 0;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (owner_[i] != from) continue;
      const at::Tensor value = parameters_[i].value;
      value.copy_(all.narrow(0, place, value.numel()).view(value.sizes()));
      place += value.numel();
    }
  }
}

bool OptimizerShards::owns(const std::string& moment) const {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const std::string& name = parameters_[i].name;
    // Moments have no dots in their own names.
    if (moment.size() > name.size() && moment.rfind(name + ".", 0) == 0 &&
        moment.find('.', name.size() + 1) == std::string::npos) {
      return owner_[i] == ranks_.rank();
    }
  }
  return true;
}

std::map<std::string, at::Tensor> OptimizerShards::gather_state(std::map<std::string, at::Tensor> own) const {
  const std::vector<std::string> descriptions = ranks_.gather_texts(describe(own));
  if (!ranks_.leads()) {
    for (const auto& [name, tensor] : own) {
      if (tensor.dim() > 0) ranks_.send(tensor.contiguous(), 0);
    }
    return own;
  }
  for (int rank = 1; rank < ranks_.size(); ++rank) {
    for (const Json& description : Json::parse(descriptions[static_cast<std::size_t>(rank)])) {
      const at::Tensor tensor = make_room(description);
      if (tensor.dim() == 0) continue;
      ranks_.receive(tensor, rank);
      own.emplace(description.at("name").get<std::string>(), tensor);
    }
  }
  return own;
}

std::map<std::string, at::Tensor> broadcast_tensors(RankGroup& ranks, const std::map<std::string, at::Tensor>& tensors,
                                                    const std::function<bool(const std::string&)>& keep) {
  const Json list = Json::parse(ranks.broadcast_text(describe(tensors), 0));
  std::map<std::string, at::Tensor> kept;
  for (const Json& description : list) {
    const auto name = description.at("name").get<std::string>();
    const at::Tensor tensor = ranks.leads() ? tensors.at(name).contiguous() : make_room(description);
    ranks.broadcast(tensor, 0);
    if (keep(name)) kept.emplace(name, tensor);
  }
  return kept;
}

std::int64_t bytes_of(const std::map<std::string, at::Tensor>& tensors) {
  std::int64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) bytes += static_cast<std::int64_t>(tensor.nbytes());
  return bytes;
}

}  // namespace routing
