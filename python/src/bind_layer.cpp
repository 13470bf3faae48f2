// A layer of attention whose weights and buffers are handed to Python as they are: the same tensors on both sides.
#include "bindings.h"
#include "routing/attention/multi_head.h"
#include "routing/attention/patterns/span.h"
#include "routing/config/experiment.h"
#include "routing/config/keys.h"
#include "routing/core/error.h"
#include "routing/core/hash.h"
#include "routing/ops/dense/packed_weights.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace routing::python {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;
// What the routed heads of a layer saw, one per head group; empty where it is not routed.
using LayerTotals = std::vector<StepTotals>;

ExperimentConfig experiment_of(const Settings& settings) {
  ExperimentConfig config;
  config.model.layers = 1;
  std::vector<KeySetting> keys;
  for (const auto& [key, value] : settings) keys.push_back({key, value, "RoutingAttention: " + key});
  apply_settings(config, keys);
  return config;
}

AttentionConfig layer_config(ExperimentConfig config, const std::string& kind) {
  AttentionConfig made;
  if (kind == "causal") {
    made = attention_of_layer(config, 0);
  } else if (kind == "bidirectional") {
    config.model.encoder_layers = 1;
    config.attention.encoder_content = config.attention.content;
    made = attention_of_encoder_layer(config, 0);
  } else {
    require<ConfigError>(kind == "cross", "kind is '", kind, "', but it must be causal, bidirectional or cross");
    config.model.encoder_layers = 1;
    config.attention.cross_content = config.attention.content;
    config.attention.cross_heads = config.attention.content_heads;
    made = cross_attention_of_layer(config, 0);
  }
  made.name = "RoutingAttention";
  return made;
}

struct LayerForward {
  at::Tensor output;
  std::optional<at::Tensor> auxiliary_loss;
  LayerTotals totals;
  std::vector<Plan> plans;
};

// The layer computes with other tensors in place of parameters of its own, until this is gone.
class Replaced {
 public:
  using Pairs = std::vector<std::pair<at::Tensor, at::Tensor>>;  // a parameter, and what stands in for it

  Replaced(MultiHeadAttentionImpl& layer, const Pairs& pairs) {
    for (const auto& [own, other] : pairs) {
      for (at::Tensor* place : layer.places_of(own)) places_.emplace_back(place, own);
    }
    auto next = places_.begin();
    for (const auto& [own, other] : pairs) {
      for (; next != places_.end() && next->second.is_same(own); ++next) *next->first = other;
    }
  }
  ~Replaced() {
    for (const auto& [place, own] : places_) *place = own;
  }
  Replaced(const Replaced&) = delete;
  Replaced& operator=(const Replaced&) = delete;

 private:
  std::vector<std::pair<at::Tensor*, at::Tensor>> places_;
};

// Weights may be written where torch does not count it: through `.data`, or NumPy's view of them. A layer written in
// Python reads them anew in every pass, so what was packed of numbers that are no longer there is forgotten. Of all
// layers together, since layers share weights. It costs a look at each number.
class UncountedWrites {
 public:
  void forget(const std::vector<at::Tensor>& weights) {
    const std::lock_guard lock(mutex_);
    if (hashes_.size() > kMost) hashes_.clear();
    for (const at::Tensor& weight : weights) {
      const at::Tensor rows = weight.detach().contiguous();
      const std::uint64_t hash = xxhash64({static_cast<const std::byte*>(rows.data_ptr()), rows.nbytes()});
      const auto [known, is_new] = hashes_.try_emplace(weight.unsafeGetTensorImpl(), hash);
      if (is_new || std::exchange(known->second, hash) != hash) forget_packed_weight(weight);
    }
  }

 private:
  // Of tensors that are gone as well: a new one at the same address is looked at like one that has changed.
  static constexpr std::size_t kMost = 10000;
  std::mutex mutex_;
  std::unordered_map<const void*, std::uint64_t> hashes_;
};

UncountedWrites& uncounted_writes() {
  static UncountedWrites writes;
  return writes;
}

struct LayerInputs {
  at::Tensor input, memory, valid, memory_valid, sample_ids;
  std::uint64_t step = 0;
  MatmulPrecision precision = MatmulPrecision::fp32;
};

class AttentionLayer {
 public:
  AttentionLayer(const Settings& settings, const std::string& kind, std::uint64_t seed, std::int64_t layer)
      : module_(layer_config(experiment_of(settings), kind), LayerPlace{.seed = seed, .layer = layer}, at::kFloat) {}

  MultiHeadAttentionImpl& module() { return *module_; }

  // What routed heads see is handed to the caller, who gives it back if the pass counts (add_totals).
  LayerForward forward(const LayerInputs& inputs, const Replaced::Pairs& pairs, bool training) {
    const Replaced replaced(*module_, pairs);
    uncounted_writes().forget(weights_of_pass(pairs));
    module_->train(training);
    LayerTotals kept = take_pending();
    AttentionState state{.memory = inputs.memory,
                         .valid = inputs.valid,
                         .memory_valid = inputs.memory_valid,
                         .sample_ids = inputs.sample_ids,
                         .precision = inputs.precision,
                         .step = inputs.step};
    LayerForward result;
    try {
      result.output = module_->forward(inputs.input, state);
    } catch (...) {
      set_pending(std::move(kept));
      throw;
    }
    result.totals = take_pending();
    set_pending(std::move(kept));
    result.auxiliary_loss = none_or_tensor(state.auxiliary_loss);
    result.plans = std::move(state.plans);
    return result;
  }

  LayerTotals take_pending() {
    LayerTotals taken(groups());
    for (std::size_t i = 0; i < groups(); ++i) {
      if (Centroids* centroids = module_->centroids(i)) {
        taken[i] = centroids->pending();
        centroids->set_pending({});
      }
    }
    return taken;
  }
  void set_pending(LayerTotals totals) {
    for (std::size_t i = 0; i < groups(); ++i) {
      if (Centroids* centroids = module_->centroids(i)) centroids->set_pending(std::move(totals[i]));
    }
  }
  void add_totals(const LayerTotals& totals) {
    require<InputError>(totals.size() == groups(), "totals of ", totals.size(), " head groups, but the layer has ",
                        groups());
    for (std::size_t i = 0; i < groups(); ++i) {
      if (Centroids* centroids = module_->centroids(i)) centroids->collect(totals[i], true);
    }
  }

  std::vector<RoutingStatistics> update(const Replaced::Pairs& pairs) {
    const Replaced replaced(*module_, pairs);
    std::vector<RoutingStatistics> statistics;
    for (std::size_t i = 0; i < groups(); ++i) {
      if (Centroids* centroids = module_->centroids(i)) statistics.push_back(centroids->update());
      if (SpanHeads* span = module_->span_heads(i)) span->clamp();
    }
    return statistics;
  }

  bool is_routed() {
    for (std::size_t i = 0; i < groups(); ++i) {
      if (module_->centroids(i) != nullptr) return true;
    }
    return false;
  }

 private:
  std::size_t groups() const { return module_->config().head_groups.size(); }

  // What it computes with, in the order of its parameters.
  std::vector<at::Tensor> weights_of_pass(const Replaced::Pairs& pairs) {
    std::vector<at::Tensor> weights;
    for (const at::Tensor& own : module_->parameters()) {
      const auto pair =
          std::find_if(pairs.begin(), pairs.end(), [&](const auto& each) { return each.first.is_same(own); });
      weights.push_back(pair == pairs.end() ? own : pair->second);
    }
    return weights;
  }

  MultiHeadAttention module_;
};

template <class Tensors>
std::vector<std::pair<std::string, at::Tensor>> listed(const Tensors& tensors) {
  std::vector<std::pair<std::string, at::Tensor>> list;
  for (const auto& item : tensors) list.emplace_back(item.key(), item.value());
  return list;
}

py::dict dict_of(const RoutingStatistics& statistics) {
  py::dict dict;
  dict["tokens"] = statistics.tokens;
  dict["occupancy_min"] = statistics.occupancy_min;
  dict["occupancy_max"] = statistics.occupancy_max;
  dict["occupancy_entropy"] = statistics.occupancy_entropy;
  dict["choice_entropy"] = statistics.choice_entropy;
  dict["moving_entropy"] = statistics.moving_entropy;
  dict["fallback_fraction"] = statistics.fallback_fraction;
  dict["dead_centroids"] = statistics.dead_centroids;
  dict["unrouted_fraction"] = statistics.unrouted_fraction;
  dict["mean_memberships"] = statistics.mean_memberships;
  dict["overlap_fraction"] = statistics.overlap_fraction;
  dict["tau_drift"] = statistics.tau_drift;
  dict["commitment_loss"] = statistics.commitment_loss;
  dict["revived"] = statistics.revived;
  return dict;
}

// Totals travel between processes as pickles of plain lists.
py::tuple state_of(const ClusterTotals& totals) {
  return py::make_tuple(totals.tokens, totals.unrouted, totals.overlapping, totals.fallback, totals.squared_distance,
                        totals.argmax, totals.nearest, totals.passing, totals.members, totals.score_sum,
                        totals.score_square_sum, totals.moving, totals.moving_sum);
}

ClusterTotals cluster_totals_of(const py::tuple& state) {
  ClusterTotals totals;
  const auto take = [&](std::size_t place, auto& value) {
    value = state[place].cast<std::remove_reference_t<decltype(value)>>();
  };
  take(0, totals.tokens);
  take(1, totals.unrouted);
  take(2, totals.overlapping);
  take(3, totals.fallback);
  take(4, totals.squared_distance);
  take(5, totals.argmax);
  take(6, totals.nearest);
  take(7, totals.passing);
  take(8, totals.members);
  take(9, totals.score_sum);
  take(10, totals.score_square_sum);
  take(11, totals.moving);
  take(12, totals.moving_sum);
  return totals;
}

py::tuple state_of(const TokenSample& sample) {
  std::vector<std::uint64_t> priorities;
  std::string numbers;
  for (const TokenSample::Entry& entry : sample.entries()) {
    priorities.push_back(entry.priority);
    numbers.append(reinterpret_cast<const char*>(entry.vector.data()), entry.vector.size() * sizeof(float));
  }
  return py::make_tuple(sample.capacity(), sample.dim(), priorities, py::bytes(numbers));
}

TokenSample token_sample_of(const py::tuple& state) {
  TokenSample sample(state[0].cast<std::size_t>(), state[1].cast<std::size_t>());
  const auto priorities = state[2].cast<std::vector<std::uint64_t>>();
  const auto numbers = state[3].cast<std::string>();
  const std::size_t size = sample.dim() * sizeof(float);
  require<InputError>(numbers.size() == priorities.size() * size, "a sample of ", priorities.size(), " tokens has ",
                      numbers.size(), " bytes, but must have ", priorities.size() * size);
  std::vector<float> vector(sample.dim());
  for (std::size_t i = 0; i < priorities.size(); ++i) {
    std::memcpy(vector.data(), numbers.data() + i * size, size);
    sample.offer(priorities[i], vector);
  }
  return sample;
}

struct Totals {
  LayerTotals groups;
};

py::tuple state_of(const Totals& totals) {
  py::list groups;
  for (const StepTotals& step : totals.groups) {
    py::list sides;
    for (const auto& side : step.totals) {
      py::list heads;
      for (const ClusterTotals& head : side) heads.append(state_of(head));
      sides.append(heads);
    }
    py::list samples;
    for (const TokenSample& sample : step.sample) samples.append(state_of(sample));
    groups.append(py::make_tuple(sides, samples));
  }
  return py::make_tuple(groups);
}

Totals totals_of(const py::tuple& state) {
  Totals totals;
  for (const py::handle group : state[0].cast<py::list>()) {
    const auto parts = group.cast<py::tuple>();
    StepTotals step;
    std::size_t place = 0;
    for (const py::handle side : parts[0].cast<py::list>()) {
      for (const py::handle head : side.cast<py::list>()) {
        step.totals.at(place).push_back(cluster_totals_of(head.cast<py::tuple>()));
      }
      ++place;
    }
    for (const py::handle sample : parts[1].cast<py::list>()) {
      step.sample.push_back(token_sample_of(sample.cast<py::tuple>()));
    }
    totals.groups.push_back(std::move(step));
  }
  return totals;
}

}  // namespace

void bind_layer(py::module_& module) {
  py::class_<Totals>(module, "Totals")
      .def(py::pickle([](const Totals& totals) { return state_of(totals); }, &totals_of));
  py::class_<LayerForward>(module, "LayerForward")
      .def_readonly("output", &LayerForward::output)
      .def_readonly("auxiliary_loss", &LayerForward::auxiliary_loss)
      .def_readonly("plans", &LayerForward::plans)
      .def_property_readonly("totals", [](const LayerForward& forward) { return Totals{forward.totals}; });
  py::class_<AttentionLayer>(module, "AttentionLayer")
      .def(py::init<const Settings&, const std::string&, std::uint64_t, std::int64_t>(), py::arg("settings"),
           py::arg("kind"), py::arg("seed"), py::arg("layer"))
      .def("parameters", [](AttentionLayer& layer) { return listed(layer.module().named_parameters()); })
      .def("buffers", [](AttentionLayer& layer) { return listed(layer.module().named_buffers()); })
      .def(
          "forward",
          [](AttentionLayer& layer, const at::Tensor& input, const std::optional<at::Tensor>& memory,
             const std::optional<at::Tensor>& padding, const std::optional<at::Tensor>& memory_padding,
             const std::optional<at::Tensor>& sample_ids, std::uint64_t step, const std::string& precision,
             bool training, const Replaced::Pairs& replaced) {
            const auto valid = [](const std::optional<at::Tensor>& mask) {
              return mask ? mask->logical_not() : at::Tensor();
            };
            const MatmulPrecision chosen = precision_of(precision);
            const py::gil_scoped_release others_may_run;
            return layer.forward({.input = input,
                                  .memory = tensor_or_none(memory),
                                  .valid = valid(padding),
                                  .memory_valid = valid(memory_padding),
                                  .sample_ids = tensor_or_none(sample_ids),
                                  .step = step,
                                  .precision = chosen},
                                 replaced, training);
          },
          py::arg("input"), py::arg("memory"), py::arg("padding"), py::arg("memory_padding"), py::arg("sample_ids"),
          py::arg("step"), py::arg("precision"), py::arg("training"), py::arg("replaced"))
      .def("take_pending", [](AttentionLayer& layer) { return Totals{layer.take_pending()}; })
      .def("add_totals", [](AttentionLayer& layer, const Totals& totals) { layer.add_totals(totals.groups); })
      .def(
          "update",
          [](AttentionLayer& layer, const Replaced::Pairs& replaced) {
            py::list list;
            for (const RoutingStatistics& statistics : layer.update(replaced)) list.append(dict_of(statistics));
            return list;
          },
          py::arg("replaced"))
      .def_property_readonly("is_routed", &AttentionLayer::is_routed);
}

}  // namespace routing::python
