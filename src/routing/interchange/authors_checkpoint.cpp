#include "routing/interchange/authors_checkpoint.h"

#include "routing/core/error.h"
#include "routing/interchange/authors_variables.h"
#include "routing/interchange/foreign_values.h"
#include "routing/model/weights.h"

#include <fmt/core.h>
#include <map>
#include <set>
#include <sstream>
#include <utility>

namespace routing {
namespace {

constexpr const char* kStep = "global_step";

// What our centroids keep and theirs do not, beside the averages of theirs.
struct OwnBuffer {
  const char* variable;  // after the scope of the centroids
  const char* tensor;    // after the name of the centroids
};
constexpr std::array kOwnBuffers{OwnBuffer{"routing_tau", "tau"}, OwnBuffer{"routing_empty_updates", "empty_updates"},
                                 OwnBuffer{"routing_updates", "updates"}};

bool is_means(const AuthorsVariable& variable) {
  return variable.name.ends_with("/means");
}

// The scope of centroids in their names and in ours, from the variable of the means.
std::pair<std::string, std::string> centroid_scopes(const AuthorsVariable& means) {
  const auto up_to = [](const std::string& name, char mark) { return name.substr(0, name.rfind(mark) + 1); };
  return {up_to(means.name, '/'), up_to(means.tensor, '.')};
}

// Heads [heads, dim] x other, with the first `count` of them last.
at::Tensor heads_moved_back(const at::Tensor& rows, std::int64_t heads, std::int64_t count) {
  const at::Tensor by_head = rows.view({heads, -1, rows.size(1)});
  return at::cat({by_head.narrow(0, count, heads - count), by_head.narrow(0, 0, count)}).view_as(rows);
}

struct HeadOrder {
  std::int64_t heads = 0;
  std::int64_t routed = 0;
};

at::Tensor to_ours(const at::Tensor& theirs, VariableLayout layout, const HeadOrder& order) {
  switch (layout) {
    case VariableLayout::same:
      return theirs;
    case VariableLayout::transposed:
      return theirs.t().contiguous();
    case VariableLayout::head_rows:
      return heads_moved_back(theirs.t().contiguous(), order.heads, order.routed);
    default:
      return heads_moved_back(theirs.contiguous(), order.heads, order.routed).t().contiguous();
  }
}

at::Tensor to_theirs(const at::Tensor& ours, VariableLayout layout, const HeadOrder& order) {
  const std::int64_t local = order.heads - order.routed;
  switch (layout) {
    case VariableLayout::same:
      return ours.contiguous();
    case VariableLayout::transposed:
      return ours.t().contiguous();
    case VariableLayout::head_rows:
      return heads_moved_back(ours.contiguous(), order.heads, local).t().contiguous();
    default:
      return heads_moved_back(ours.t().contiguous(), order.heads, local);
  }
}

// Everything that is wrong with a checkpoint, for one message.
class Complaints {
 public:
  void add(const std::string& kind, const std::string& text) {
    by_kind_[kind] += (by_kind_[kind].empty() ? "" : ", ") + text;
  }
  void throw_if_any(const std::string& where) const {
    if (by_kind_.empty()) return;
    std::string text;
    for (const auto& [kind, names] : by_kind_) text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", kind, names);
    throw FileError(where + ": does not fit the configuration. " + text +
                    "; choose the configuration that the checkpoint was trained with");
  }

 private:
  std::map<std::string, std::string> by_kind_;
};

class Reader {
 public:
  Reader(const std::filesystem::path& prefix, const ExperimentConfig& config)
      : bundle_(prefix), where_(prefix.string()), config_(config), variables_(authors_variables(config)) {}

  AuthorsModel read() {
    AuthorsModel read{.model = Transformer(config_, at::TensorOptions().dtype(at::kFloat))};
    std::map<std::string, at::Tensor> ours = named_tensors(*read.model);
    for (const AuthorsVariable& variable : variables_) {
      expect(kAuthorsScope + variable.name, NumberType::float32, variable.dimensions);
    }
    for (const auto& [name, place] : missing_mixes()) expect(name, NumberType::float32, {place.dim, place.dim});
    expect_own_buffers(ours);
    for (const auto& [name, variable] : bundle_.variables()) {
      if (expected_.count(name) == 1) continue;
      if (is_no_weight(name)) {
        read.skipped.push_back(name);
      } else {
        complaints_.add("not part of the model", "'" + name + "' " + dimensions_text(variable.dimensions));
      }
    }
    complaints_.throw_if_any(where_);
    const auto step = bundle_.variables().find(kStep);
    if (step != bundle_.variables().end() && step->second.type == NumberType::int64) {
      read.step = tensor_of(kStep).item<std::int64_t>();
    }
    fill(ours, read);
    load_tensors(*read.model, ours, where_);
    read.model->eval();
    return read;
  }

 private:
  struct MixPlace {
    std::int64_t layer = 0;
    std::int64_t dim = 0;
  };

  // Layers of theirs all have the head mix; those of ours only where routing asks for it.
  std::map<std::string, MixPlace> missing_mixes() const {
    std::map<std::string, MixPlace> places;
    for (std::int64_t layer = 0; layer < config_.model.layers; ++layer) {
      const AttentionConfig attention = attention_of_layer(config_, layer);
      if (!attention.head_mix) places[kAuthorsScope + authors_head_mix(layer)] = {layer, head_dim(attention)};
    }
    return places;
  }

  void expect(const std::string& name, NumberType type, const Dimensions& dimensions) {
    expected_.insert(name);
    const auto found = bundle_.variables().find(name);
    if (found == bundle_.variables().end()) {
      complaints_.add("missing", "'" + name + "' " + dimensions_text(dimensions));
    } else if (found->second.dimensions != dimensions || found->second.type != type) {
      const BundleVariable& there = found->second;
      complaints_.add("of another shape or type", "'" + name + "' is " +
                                                      (there.type ? name_of(*there.type) : "no number") + " " +
                                                      dimensions_text(there.dimensions) + " but must be " +
                                                      name_of(type) + " " + dimensions_text(dimensions));
    }
  }

  // They are there if we wrote the checkpoint.
  void expect_own_buffers(const std::map<std::string, at::Tensor>& ours) {
    for (const AuthorsVariable& variable : variables_) {
      if (!is_means(variable)) continue;
      const auto [theirs, tensors] = centroid_scopes(variable);
      for (const OwnBuffer& buffer : kOwnBuffers) {
        const std::string name = kAuthorsScope + theirs + buffer.variable;
        if (!bundle_.variables().contains(name)) continue;
        const at::Tensor& tensor = ours.at(tensors + buffer.tensor);
        expect(name, number_type(tensor.scalar_type()), tensor.sizes().vec());
        own_buffers_[tensors + buffer.tensor] = name;
      }
    }
  }

  at::Tensor tensor_of(const std::string& name) const {
    const BundleVariable& variable = bundle_.variables().at(name);
    return tensor_from(bundle_.bytes(name), *variable.type, variable.dimensions);
  }

  void fill(std::map<std::string, at::Tensor>& ours, AuthorsModel& read) const {
    for (const AuthorsVariable& variable : variables_) {
      const HeadOrder order{config_.attention.heads, variable.routed_heads};
      ours[variable.tensor] = to_ours(tensor_of(kAuthorsScope + variable.name), variable.layout, order);
      if (!is_means(variable)) continue;
      const std::string updates = centroid_scopes(variable).second + "updates";
      if (read.step) ours[updates] = at::scalar_tensor(*read.step, at::kLong);
    }
    for (const auto& [tensor, name] : own_buffers_) ours[tensor] = tensor_of(name);
    for (const auto& [name, place] : missing_mixes()) {
      fold(tensor_of(name), ours.at("layer" + std::to_string(place.layer) + ".attention.output_weight"), read, name);
    }
  }

  // Output = [heads M] W is [heads] W' with M W_h in the place of each head's W_h.
  static void fold(const at::Tensor& mix, at::Tensor& output_weight, AuthorsModel& read, const std::string& name) {
    const at::Tensor identity = at::eye(mix.size(0), mix.options());
    if (at::equal(mix, identity)) return;
    const at::Tensor by_head = output_weight.t().contiguous().view({-1, mix.size(0), output_weight.size(0)});
    const at::Tensor mixed = at::matmul(mix.to(at::kDouble), by_head.to(at::kDouble));
    output_weight = mixed.to(at::kFloat).view({-1, output_weight.size(0)}).t().contiguous();
    read.folded.push_back(name);
  }

  TensorBundle bundle_;
  std::string where_;
  const ExperimentConfig& config_;
  std::vector<AuthorsVariable> variables_;
  std::set<std::string> expected_;
  std::map<std::string, std::string> own_buffers_;
  Complaints complaints_;
};

}  // namespace

AuthorsModel read_authors_checkpoint(const std::filesystem::path& prefix, const ExperimentConfig& config) {
  return Reader(prefix, config).read();
}

void write_authors_checkpoint(const std::filesystem::path& prefix, const SequenceModel& model) {
  const ExperimentConfig& config = model.config();
  const std::map<std::string, at::Tensor> ours = named_tensors(model);
  std::map<std::string, at::Tensor> theirs;
  at::Tensor step = at::zeros({}, at::kLong);
  for (const AuthorsVariable& variable : authors_variables(config)) {
    const HeadOrder order{config.attention.heads, variable.routed_heads};
    theirs[kAuthorsScope + variable.name] = to_theirs(ours.at(variable.tensor), variable.layout, order);
    if (!is_means(variable)) continue;
    const auto [scope, tensors] = centroid_scopes(variable);
    for (const OwnBuffer& buffer : kOwnBuffers) {
      theirs[kAuthorsScope + scope + buffer.variable] = ours.at(tensors + buffer.tensor).contiguous();
    }
    step = ours.at(tensors + "updates").contiguous();
  }
  for (std::int64_t layer = 0; layer < config.model.layers; ++layer) {
    const AttentionConfig attention = attention_of_layer(config, layer);
    if (!attention.head_mix) theirs[kAuthorsScope + authors_head_mix(layer)] = at::eye(head_dim(attention), at::kFloat);
  }
  theirs[kStep] = step;
  std::vector<BundleTensor> tensors;
  tensors.reserve(theirs.size());
  for (const auto& [name, tensor] : theirs) tensors.push_back(bundle_tensor(name, tensor));
  write_tensor_bundle(prefix, std::move(tensors));
}

}  // namespace routing
