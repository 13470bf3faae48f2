#include "inform/model_facts.h"

#include "routing/config/parameter_count.h"
#include "routing/training/learner.h"
#include "routing/training/memory_estimate.h"
#include "shell/output.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

namespace routing {
namespace {

// How many keys a query reads at most in one list, and how many lists it is in at most.
struct Reach {
  std::int64_t keys = 0;
  std::int64_t lists = 1;
};

Reach reach_of(const FullPattern& /*pattern*/, std::int64_t n) {
  return {n};
}
Reach reach_of(const LocalPattern& pattern, std::int64_t /*n*/) {
  return {pattern.form == LocalForm::block ? (1 + pattern.flange) * pattern.window : pattern.window};
}
Reach reach_of(const StridedPattern& pattern, std::int64_t n) {
  return {(n + pattern.stride - 1) / pattern.stride};
}
Reach reach_of(const RandomPattern& pattern, std::int64_t /*n*/) {
  return {pattern.window, pattern.groups};
}
Reach reach_of(const LshPattern& pattern, std::int64_t /*n*/) {
  return {pattern.window, pattern.rounds};
}
Reach reach_of(const FixedPattern& pattern, std::int64_t n) {
  const std::int64_t in_last_cell = std::max<std::int64_t>(0, n % pattern.stride - (pattern.stride - pattern.summary));
  return {n / pattern.stride * pattern.summary + in_last_cell};
}
Reach reach_of(const Local2dPattern& pattern, std::int64_t /*n*/) {
  const std::int64_t columns = std::min(pattern.image_width, pattern.columns + 2 * pattern.beside);
  return {3 * (pattern.rows + pattern.above) * columns};
}
Reach reach_of(const SpanPattern& pattern, std::int64_t /*n*/) {
  return {pattern.limit};
}
Reach reach_of(const RoutingPattern& pattern, std::int64_t /*n*/) {
  switch (pattern.selection) {
    case RoutingSelection::balanced:
      return {pattern.window, pattern.clusters};
    case RoutingSelection::nearest:
      return {pattern.window};
    case RoutingSelection::threshold:
      return {pattern.window, std::min(pattern.max_memberships, pattern.clusters)};
  }
  return {};
}

OrderedJson groups_of_layer(const ExperimentConfig& config, std::int64_t layer) {
  OrderedJson groups = OrderedJson::array();
  for (const HeadGroupConfig& group : attention_of_layer(config, layer).head_groups) {
    const std::int64_t n = config.train.sequence_length + config.memory.length + config.memory.compressed;
    const Reach reach = std::visit([&](const auto& pattern) { return reach_of(pattern, n); }, group.pattern);
    OrderedJson facts{{"pattern", pattern_name(group.pattern)},
                      {"heads", group.heads},
                      {"keys", std::min(reach.keys, n)},
                      {"lists", reach.lists}};
    // Heads with a span are groups by themselves.
    if (!groups.empty() && groups.back()["pattern"] == facts["pattern"] && groups.back()["keys"] == facts["keys"]) {
      groups.back()["heads"] = groups.back()["heads"].get<std::int64_t>() + group.heads;
    } else {
      groups.push_back(std::move(facts));
    }
  }
  return groups;
}

// Layers that are alike stand together.
OrderedJson layers_of(const ExperimentConfig& config) {
  OrderedJson layers = OrderedJson::array();
  for (std::int64_t layer = 0; layer < config.model.layers; ++layer) {
    OrderedJson groups = groups_of_layer(config, layer);
    if (!layers.empty() && layers.back()["groups"] == groups) {
      layers.back()["last"] = layer;
    } else {
      layers.push_back({{"first", layer}, {"last", layer}, {"groups", std::move(groups)}});
    }
  }
  return layers;
}

OrderedJson memory_of(const ExperimentConfig& config) {
  if (config.model.encoder_layers > 0) return nullptr;  // not estimated
  const MemoryEstimate memory = estimate_training_memory(config);
  return {{"total_bytes", memory.total()},
          {"weights_bytes", memory.weights},
          {"gradients_bytes", memory.gradients},
          {"optimizer_bytes", memory.optimizer},
          {"packed_weights_bytes", memory.packed_weights},
          {"activations_bytes", memory.activations},
          {"plans_bytes", memory.plans},
          {"workspace_bytes", memory.workspace},
          {"process_bytes", kProcessBytes},
          {"layer_token_bytes", memory.layer_bytes_a_token}};
}

std::string group_text(const OrderedJson& group) {
  std::string text = std::to_string(group["heads"].get<std::int64_t>()) + " " + group["pattern"].get<std::string>() +
                     " (up to " + std::to_string(group["keys"].get<std::int64_t>()) + " keys";
  const auto lists = group["lists"].get<std::int64_t>();
  if (lists > 1) text += " in each of up to " + std::to_string(lists) + " lists";
  return text + ")";
}

std::string layer_text(const OrderedJson& layer) {
  std::string text;
  for (const OrderedJson& group : layer["groups"]) text += (text.empty() ? "" : " + ") + group_text(group);
  return text;
}

std::string range_text(const OrderedJson& layer) {
  const auto first = layer["first"].get<std::int64_t>();
  const auto last = layer["last"].get<std::int64_t>();
  return first == last ? "layer " + std::to_string(first)
                       : "layers " + std::to_string(first) + ".." + std::to_string(last);
}

}  // namespace

std::string bytes_text(std::int64_t bytes) {
  constexpr double kMebibyte = 1024.0 * 1024.0;
  const double mebibytes = static_cast<double>(bytes) / kMebibyte;
  return mebibytes >= 1024.0 ? fixed_digits(mebibytes / 1024.0, 1) + " GiB" : fixed_digits(mebibytes, 1) + " MiB";
}

OrderedJson model_facts(const ExperimentConfig& config) {
  const ParameterCount count = count_parameters(config);
  const bool bf16 = matmul_precision(config.train.precision) == MatmulPrecision::bf16;
  return {{"name", config.name},
          {"source", config.source},
          {"data_format", to_string(config.data.format)},
          {"validity", validity_label(config)},
          {"vocab_size", config.model.vocab_size},
          {"width", config.model.width},
          {"parameters",
           {{"total", count.total()},
            {"embedding", count.embedding},
            {"attention", count.attention},
            {"feedforward", count.feedforward},
            {"norms", count.norms},
            {"output", count.output},
            {"a_word", count.a_word}}},
          {"layers", layers_of(config)},
          {"batch_size", config.train.batch_size},
          {"sequence_length", config.train.sequence_length},
          {"sequence_ranks", config.train.sequence_ranks},
          {"precision", bf16 ? "bf16" : "fp32"},
          {"optimizer", to_string(config.train.optimizer)},
          {"remembers",
           {{"tokens", config.memory.length},
            {"compressed", config.memory.compressed},
            {"rate", config.memory.rate},
            {"compression", to_string(config.memory.compression)}}},
          {"memory", memory_of(config)}};
}

void print_model_facts(const OrderedJson& facts) {
  const auto word = [&](const char* key) { return facts[key].get<std::string>(); };
  const auto number = [&](const char* key) { return std::to_string(facts[key].get<std::int64_t>()); };
  const auto number_of = [](const OrderedJson& value) { return std::to_string(value.get<std::int64_t>()); };
  const auto weights = [&](const char* key) { return weights_text(facts["parameters"][key].get<std::int64_t>()); };
  const auto bytes = [&](const std::string& key) {
    return bytes_text(facts["memory"][key + "_bytes"].get<std::int64_t>());
  };
  std::vector<std::pair<std::string, std::string>> lines{
      {"experiment", word("name") + " (" + word("source") + ")"},
      {"validity", word("validity") + (facts.contains("audit") ? "; audit: " + word("audit") : "")},
      {"weights", weights("total") + ": embedding " + weights("embedding") + ", attention " + weights("attention") +
                      ", feed-forward " + weights("feedforward") + ", output " + weights("output")}};
  if (facts["vocab_size"].get<std::int64_t>() == 0) {
    lines.emplace_back("vocabulary", "of the data; " +
                                         std::to_string(facts["parameters"]["a_word"].get<std::int64_t>()) +
                                         " weights more for each entry");
  }
  for (const OrderedJson& layer : facts["layers"]) lines.emplace_back(range_text(layer), layer_text(layer));
  lines.emplace_back("a step", number("batch_size") + " x " + number("sequence_length") + " tokens, " +
                                   word("precision") + ", " + word("optimizer"));
  const OrderedJson& remembers = facts["remembers"];
  const auto remembered = [&](const char* key) { return std::to_string(remembers[key].get<std::int64_t>()); };
  if (remembers["tokens"] > 0) {
    std::string text = remembered("tokens") + " tokens before a segment";
    if (remembers["compressed"] > 0) {
      text += ", " + remembered("compressed") + " places for older ones, " + remembered("rate") + " in each (" +
              remembers["compression"].get<std::string>() + ")";
    }
    lines.emplace_back("remembers", text);
  }
  if (facts["memory"].is_null()) {
    lines.emplace_back("memory", "not estimated for encoder-decoders");
    print_pairs(lines, 14);
    return;
  }
  lines.emplace_back("memory", "about " + bytes("total") + " to train, and " + bytes("process") + " for the process");
  for (const char* part :
       {"weights", "gradients", "optimizer", "packed_weights", "activations", "plans", "workspace"}) {
    lines.emplace_back("", bytes(part) + " " + part);
  }
  lines.emplace_back(
      "a token", number_of(facts["memory"]["layer_token_bytes"]) + " bytes in each layer, kept for the backward pass" +
                     (facts["sequence_ranks"] > 1 ? "; all above is of the last of " + number("sequence_ranks") +
                                                        " ranks that share the sequences"
                                                  : ""));
  print_pairs(lines, 14);
}

}  // namespace routing
