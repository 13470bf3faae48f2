#include "routing/interchange/public_arguments.h"

#include "routing/config/text/number_text.h"
#include "routing/core/error.h"
#include "routing/core/nearest_name.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

namespace routing {
namespace {

// Of the forward pass in evaluation, nothing depends on these.
const std::vector<std::string> kOfTraining{"weight_tie",
                                           "attn_dropout",
                                           "ff_dropout",
                                           "attn_layer_dropout",
                                           "layer_dropout",
                                           "ff_chunks",
                                           "ff_mult",
                                           "pkm_num_keys",
                                           "moe_num_experts",
                                           "moe_loss_coef",
                                           "_register_kmeans_update",
                                           "context_window_size",
                                           "context_shared_qk",
                                           "use_absolute_pos_emb",
                                           "return_embeddings"};

// What has a counterpart at one value only. Most of them would also show in the tensors.
const std::vector<std::pair<std::string, std::string>> kFixed{
    {"causal", "true"},      {"reversible", "false"},     {"receives_context", "false"}, {"ff_glu", "false"},
    {"use_rezero", "false"}, {"use_scale_norm", "false"}, {"shift_tokens", "false"},     {"num_mem_kv", "0"},
    {"shared_qk", "true"},   {"pkm_layers", "()"},        {"moe_layers", "()"}};

std::string lower_case(std::string text) {
  for (char& letter : text) letter = static_cast<char>(letter >= 'A' && letter <= 'Z' ? letter + 32 : letter);
  return text;
}

std::string without_blanks(std::string text) {
  std::erase(text, ' ');
  return text;
}

class Given {
 public:
  Given(PublicArguments& arguments, const GivenArguments& given) : arguments_(arguments), given_(given) {}

  void apply() {
    require<ConfigError>(given_.count("causal") == 1,
                         "causal is not given, and no tensor tells; give causal=true if the model was made so, which "
                         "is not its default");
    for (const auto& [name, value] : given_) require_known(name);
    for (const auto& [name, only] : kFixed) require_fixed(name, only);
    compare("num_tokens", arguments_.num_tokens);
    compare("dim", arguments_.dim);
    compare("emb_dim", arguments_.dim);
    compare("depth", arguments_.depth);
    compare("max_seq_len", arguments_.max_seq_len);
    compare("heads", arguments_.heads);
    compare("dim_head", arguments_.dim_head);
    compare_local_heads();
    compare_word("tie_embedding", arguments_.tied);
    set_windows();
    set_activation();
    if (const auto decay = number<double>("kmeans_ema_decay")) arguments_.ema_decay = *decay;
    if (const auto commitment = number<double>("commitment_factor")) arguments_.commitment = *commitment;
    require<ConfigError>(differences_.empty(), differences_);
  }

 private:
  void add(const std::string& difference) { differences_ += (differences_.empty() ? "" : "; ") + difference; }

  std::optional<std::string> value(const std::string& name) const {
    const auto found = given_.find(name);
    if (found == given_.end() || lower_case(found->second) == "none") return std::nullopt;
    return found->second;
  }

  template <class Number>
  std::optional<Number> number(const std::string& name) {
    const std::optional<std::string> text = value(name);
    if (!text) return std::nullopt;
    const std::optional<Number> parsed = number_in<Number>(*text);
    if (!parsed) add(name + " is '" + *text + "', which is not a number");
    return parsed;
  }

  void require_known(const std::string& name) {
    static const std::vector<std::string> all = [] {
      std::vector<std::string> names{"num_tokens",
                                     "dim",
                                     "emb_dim",
                                     "depth",
                                     "max_seq_len",
                                     "heads",
                                     "dim_head",
                                     "window_size",
                                     "n_local_attn_heads",
                                     "tie_embedding",
                                     "rel_pos_emb",
                                     "local_attn_window_size",
                                     "local_attn_radius_blocks",
                                     "ff_activation",
                                     "kmeans_ema_decay",
                                     "commitment_factor"};
      names.insert(names.end(), kOfTraining.begin(), kOfTraining.end());
      for (const auto& [each, only] : kFixed) names.push_back(each);
      return names;
    }();
    if (std::find(all.begin(), all.end(), name) != all.end()) return;
    const std::string guess = did_you_mean(name, all);
    add("'" + name + "' is no argument of RoutingTransformerLM" + (guess.empty() ? "" : "; " + guess));
  }

  void require_fixed(const std::string& name, const std::string& only) {
    const std::optional<std::string> text = value(name);
    if (!text) return;
    const std::string plain = lower_case(without_blanks(*text));
    const bool empty_list = only == "()" && (plain == "[]" || plain.empty());
    if (plain == only || empty_list) return;
    add(name + " is '" + *text + "', which has no counterpart here; only '" + only + "' has");
  }

  void compare(const std::string& name, std::int64_t found) {
    const std::optional<std::int64_t> wanted = number<std::int64_t>(name);
    if (wanted && *wanted != found) {
      add(name + " is given as " + std::to_string(*wanted) + ", but the tensors say " + std::to_string(found));
    }
  }

  void compare_word(const std::string& name, bool found) {
    const std::optional<std::string> text = value(name);
    const std::string tensors = found ? "true" : "false";
    if (text && lower_case(*text) != tensors) {
      add(name + " is given as '" + *text + "', but the tensors say '" + tensors + "'");
    }
  }

  // One number for all layers, or a list.
  void compare_local_heads() {
    const std::optional<std::string> text = value("n_local_attn_heads");
    if (!text) return;
    std::string found = "(";
    for (const std::int64_t heads : arguments_.local_heads)
      found += (found.size() > 1 ? "," : "") + std::to_string(heads);
    found += ")";
    std::string plain = without_blanks(*text);
    if (const auto one = number_in<std::int64_t>(plain)) {
      const bool all = std::all_of(arguments_.local_heads.begin(), arguments_.local_heads.end(),
                                   [&](std::int64_t heads) { return heads == *one; });
      if (all) return;
    }
    std::replace(plain.begin(), plain.end(), '[', '(');
    std::replace(plain.begin(), plain.end(), ']', ')');
    if (plain == found) return;
    add("n_local_attn_heads is given as '" + *text + "', but the tensors say " + found);
  }

  void set_windows() {
    const std::optional<std::int64_t> window = number<std::int64_t>("window_size");
    if (arguments_.clusters > 0) {
      arguments_.window_size = arguments_.max_seq_len / arguments_.clusters;
      compare("window_size", arguments_.window_size);
    } else {
      arguments_.window_size = window.value_or(0);
    }
    arguments_.local_window = number<std::int64_t>("local_attn_window_size").value_or(arguments_.window_size);
    arguments_.local_radius = number<std::int64_t>("local_attn_radius_blocks").value_or(1);
    const bool any_local = std::any_of(arguments_.local_heads.begin(), arguments_.local_heads.end(),
                                       [](std::int64_t heads) { return heads > 0; });
    if (any_local && arguments_.local_window < 1) {
      add("local_attn_window_size is not given, and no tensor tells; give it, or window_size if it was None");
    }
    if (arguments_.local_radius < 0) add("local_attn_radius_blocks is below 0");
  }

  void set_activation() {
    const std::string word = lower_case(value("ff_activation").value_or("gelu"));
    const std::string last = word.substr(word.rfind('.') == std::string::npos ? 0 : word.rfind('.') + 1);
    arguments_.relu = last == "relu";
    if (last != "relu" && last != "gelu") {
      add("ff_activation is '" + *value("ff_activation") + "', which has no counterpart here; GELU and ReLU have");
    }
  }

  PublicArguments& arguments_;
  const GivenArguments& given_;
  std::string differences_;
};

}  // namespace

void apply_given_arguments(PublicArguments& arguments, const GivenArguments& given) {
  Given(arguments, given).apply();
}

std::string routed_layers(const PublicArguments& arguments) {
  std::vector<std::int64_t> routed;
  std::int64_t local = -1;
  for (std::int64_t layer = 0; layer < arguments.depth; ++layer) {
    const std::int64_t heads = arguments.local_heads[static_cast<std::size_t>(layer)];
    if (heads == arguments.heads) continue;
    require<ConfigError>(local < 0 || local == heads, "n_local_attn_heads is ", local, " and ", heads,
                         " in layers with routed heads, but all such layers have equally many here");
    local = heads;
    routed.push_back(layer);
  }
  if (routed.empty()) return "";
  if (static_cast<std::int64_t>(routed.size()) == arguments.depth) return "all";
  const auto layers_of = [&](std::int64_t first, std::int64_t step, std::int64_t last) {
    std::vector<std::int64_t> layers;
    for (std::int64_t layer = first; layer <= last; layer += step) layers.push_back(layer);
    return layers;
  };
  if (routed == layers_of(routed.front(), 1, routed.back())) {
    return std::to_string(routed.front()) + ".." + std::to_string(routed.back());
  }
  if (routed == layers_of(1, 2, arguments.depth - 1)) return "odd";
  if (routed == layers_of(0, 2, arguments.depth - 1)) return "even";
  throw ConfigError(
      "the layers with routed heads are neither neighbours nor every other one, and attention.content_layers "
      "has no word for them");
}

}  // namespace routing
