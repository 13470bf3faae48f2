#include "routing/interchange/authors_variables.h"

#include "routing/config/keys.h"
#include "routing/core/error.h"

#include <array>
#include <sstream>
#include <string_view>

namespace routing {
namespace {

struct Expectation {
  const char* key;
  const char* value;
};

constexpr std::array kOfAllModels{Expectation{"model.encoder_layers", "0"},
                                  Expectation{"model.image_height", "0"},
                                  Expectation{"model.positions", "none"},
                                  Expectation{"model.norm", "post"},
                                  Expectation{"model.tied_output", "false"},
                                  Expectation{"model.start_symbol", "zero"},
                                  Expectation{"model.bands", ""},
                                  Expectation{"memory.length", "0"},
                                  Expectation{"attention.add_content", "false"},
                                  Expectation{"local.form", "block"},
                                  Expectation{"local.shared_query_key", "false"},
                                  Expectation{"local.key_shift", "0"},
                                  Expectation{"local.scale", "1/sqrt(head_dim)"},
                                  Expectation{"local.learned_scale", "false"},
                                  Expectation{"local.self", "allowed"},
                                  Expectation{"local.recency", "false"}};

constexpr std::array kOfRoutedModels{Expectation{"routing.selection", "balanced"},
                                     Expectation{"routing.shared_query_key", "true"},
                                     Expectation{"routing.scale_before_norm", "true"},
                                     Expectation{"routing.key_shift", "0"},
                                     Expectation{"routing.scale", "1"},
                                     Expectation{"routing.learned_scale", "false"},
                                     Expectation{"routing.self", "allowed"},
                                     Expectation{"routing.merge", "mean"},
                                     Expectation{"routing.merge_eps", "0.01"},
                                     Expectation{"routing.recency", "false"},
                                     Expectation{"routing.unused_key_columns", "true"}};

template <class Expectations>
void compare(const ExperimentConfig& config, const Expectations& expectations, std::ostringstream& differences) {
  for (const Expectation& each : expectations) {
    const std::string value = get_key(config, each.key);
    if (value == each.value) continue;
    differences << (differences.tellp() > 0 ? ", " : "") << each.key << " is '" << value << "', not '" << each.value
                << "'";
  }
}

void require_like_the_authors(const ExperimentConfig& config) {
  std::ostringstream differences;
  compare(config, kOfAllModels, differences);
  const PatternKind content = config.attention.content;
  const bool routed = content == PatternKind::routing && config.attention.content_heads > 0;
  if (routed) compare(config, kOfRoutedModels, differences);
  const auto add = [&](const std::string& text) { differences << (differences.tellp() > 0 ? ", " : "") << text; };
  if (content != PatternKind::routing && content != PatternKind::local) {
    add("attention.content is '" + get_key(config, "attention.content") + "', not 'routing' or 'local'");
  }
  if (config.patterns.local.relative == RelativePosition::rank) {
    add("local.relative is 'rank', not 'true_offset' or 'none'");
  }
  if (routed && config.routing.group.relative == RelativePosition::true_offset) {
    add("routing.relative is 'true_offset', not 'rank' or 'none'");
  }
  const ModelConfig& model = config.model;
  const bool projected =
      model.embedding_projection || (model.embedding_width != 0 && model.embedding_width != model.width);
  if (!projected) add("model.embedding_projection is 'false', not 'true'");
  const std::int64_t heads = config.attention.heads;
  if (model.head_dim != 0 && model.head_dim * heads != model.width) {
    add("model.head_dim is '" + std::to_string(model.head_dim) + "', not model.width / attention.heads");
  }
  require<ConfigError>(differences.str().empty(), config.name,
                       ": computes something else than the authors' code, so their checkpoints do not fit: ",
                       differences.str(), "; take a preset …-code");
}

class Variables {
 public:
  explicit Variables(const ExperimentConfig& config) : config_(config) {}

  std::vector<AuthorsVariable> all() {
    const ModelConfig& model = config_.model;
    const std::int64_t inner = model.embedding_width > 0 ? model.embedding_width : model.width;
    add("embeddings/embedding", {model.vocab_size, inner}, "embedding");
    add_dense("emb_dense", {inner, model.width}, "embedding_out");
    for (std::int64_t layer = 0; layer < model.layers; ++layer) add_layer(layer);
    if (inner != model.width) add_dense("final_dense_1", {model.width, inner}, "output_in");
    add_dense("final_dense_2", {inner, model.vocab_size}, "output");
    return std::move(variables_);
  }

 private:
  void add(const std::string& name, const Dimensions& dimensions, const std::string& tensor,
           VariableLayout layout = VariableLayout::same) {
    variables_.push_back(
        {.name = name, .dimensions = dimensions, .tensor = tensor, .layout = layout, .routed_heads = routed_heads_});
  }
  void add_dense(const std::string& scope, const Dimensions& dimensions, const std::string& tensor) {
    add(scope + "/kernel", dimensions, tensor + "_weight", VariableLayout::transposed);
    add(scope + "/bias", {dimensions[1]}, tensor + "_bias");
  }

  void add_layer(std::int64_t layer) {
    const AttentionConfig attention = attention_of_layer(config_, layer);
    const std::int64_t width = config_.model.width;
    const std::int64_t dim = head_dim(attention);
    const std::int64_t all_heads = total_heads(attention) * dim;
    const std::string scope = "decoder_layer_" + std::to_string(layer) + "/self_attention/";
    const std::string heads = scope + "self_attention/";
    const std::string ours = "layer" + std::to_string(layer) + ".";
    routed_heads_ = 0;
    for (std::size_t index = 0; index < attention.head_groups.size(); ++index) {
      add_group(attention.head_groups[index], dim, heads + "attention_nd/",
                ours + "attention.group" + std::to_string(index));
    }
    for (const char* part : {"query", "key", "value"}) {
      add(heads + std::string(part, 1) + "/kernel", {width, all_heads}, ours + "attention." + part + "_weight",
          VariableLayout::head_rows);
    }
    if (attention.head_mix) {
      add(authors_head_mix(layer), {dim, dim}, ours + "attention.head_mix_weight", VariableLayout::transposed);
    }
    add(heads + "output_transform/kernel", {all_heads, width}, ours + "attention.output_weight",
        VariableLayout::head_columns);
    add_norm(scope + "layer_postprocess/layer_norm/", ours + "attention_norm.");
    add_feedforward(scope + "ffn/", ours + "feedforward.");
    add_norm(scope + "layer_postprocess_1/layer_norm/", ours + "feedforward_norm.");
  }

  void add_group(const HeadGroupConfig& group, std::int64_t dim, const std::string& scope, const std::string& ours) {
    std::string inner = scope + "local_nd/";
    if (const auto* const routing = std::get_if<RoutingPattern>(&group.pattern)) {
      routed_heads_ = group.heads;
      inner = scope + "cluster_attention/cluster_attention/";
      const std::string centroids = ours + ".centroids.";
      add(inner + "means", {group.heads, routing->clusters, dim}, centroids + "centroids");
      add(inner + "ema_means", {group.heads, routing->clusters, dim}, centroids + "sums");
      add(inner + "ema_count", {group.heads, routing->clusters}, centroids + "counts");
    }
    if (group.relative == RelativePosition::none) return;
    const Dimensions table{2 * group.max_relative + 1, dim};
    add(inner + "relative_positions_keys/embeddings", table, ours + "_relative_key");
    add(inner + "relative_positions_values/embeddings", table, ours + "_relative_value");
  }

  void add_norm(const std::string& scope, const std::string& ours) {
    add(scope + "layer_norm_scale", {config_.model.width}, ours + "gain");
    add(scope + "layer_norm_bias", {config_.model.width}, ours + "bias");
  }

  void add_feedforward(const std::string& scope, const std::string& ours) {
    const std::int64_t width = config_.model.width;
    const std::int64_t hidden = config_.model.feedforward_width;
    if (config_.model.feedforward == FeedforwardKind::relu) {
      add_dense(scope + "conv1", {width, hidden}, ours + "in");
      add_dense(scope + "conv2", {hidden, width}, ours + "out");
      return;
    }
    add(scope + "weight1/kernel", {width, hidden}, ours + "gate_weight", VariableLayout::transposed);
    add(scope + "weight2/kernel", {width, hidden}, ours + "in_weight", VariableLayout::transposed);
    add(scope + "weight3/kernel", {hidden, width}, ours + "out_weight", VariableLayout::transposed);
  }

  const ExperimentConfig& config_;
  std::vector<AuthorsVariable> variables_;
  std::int64_t routed_heads_ = 0;  // of the layer at hand
};

}  // namespace

std::vector<AuthorsVariable> authors_variables(const ExperimentConfig& config) {
  require_like_the_authors(config);
  return Variables(config).all();
}

std::string authors_head_mix(std::int64_t layer) {
  return "decoder_layer_" + std::to_string(layer) + "/self_attention/self_attention/attention_nd/dense/kernel";
}

bool is_no_weight(const std::string& name) {
  if (!name.starts_with(kAuthorsScope)) return true;
  for (std::size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
    const std::string_view part = std::string_view(name).substr(slash + 1);
    if (part.starts_with("Adafactor") || part.starts_with("Adam") || part.starts_with("Momentum")) return true;
  }
  return false;
}

}  // namespace routing
