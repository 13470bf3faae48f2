#include "serve/page/page_model.h"

#include "analyze/attention_text.h"
#include "lab/heads/head_reading.h"
#include "lab/heads/token_text.h"
#include "routing/core/error.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace routing {
namespace {

using Json = nlohmann::ordered_json;

bool is_image(const AskedModel& model) {
  return model.tokenizer == nullptr;
}

void check(const AskedModel& model, std::span<const std::int32_t> ids) {
  require<ConfigError>(!model.model->reads_source(), model.name,
                       ": reads a source and writes a target; attention is shown of models that read one text");
  require<ConfigError>(!ids.empty(), "there is no token in the text; give a longer one");
  const std::int64_t vocabulary = model.model->config().model.vocab_size;
  for (const std::int32_t id : ids) {
    require<ConfigError>(id >= 0 && id < vocabulary, "token ", id, " is not one of ", model.name,
                         ", whose ids are 0 to ", vocabulary - 1);
  }
}

AttentionText text_of(const AskedModel& model, std::span<const std::int32_t> ids) {
  AttentionText text;
  text.image = is_image(model);
  if (!text.image) {
    text.tokens = token_texts(*model.tokenizer, ids);
    return text;
  }
  for (std::size_t place = 0; place < ids.size(); ++place) {
    text.tokens.push_back(
        {.shown = "",
         .label = image_token_label(static_cast<std::int64_t>(place), model.model->config().model.image_width)});
  }
  return text;
}

// Of a text one more position is run than it has tokens, so that the last token is read too. What stands there is not
// read by anything.
ModelProbes probe(const AskedModel& model, std::span<const std::int32_t> ids) {
  const auto size = static_cast<std::int64_t>(ids.size());
  at::Tensor tokens = at::zeros({1, is_image(model) ? size : size + 1}, at::kLong);
  std::copy(ids.begin(), ids.end(), tokens.data_ptr<std::int64_t>());
  const at::NoGradGuard no_gradient;
  return model.model->probe(tokens, {.precision = model.precision});
}

std::shared_ptr<const ModelProbes> probes_of(const AskedModel& model, std::span<const std::int32_t> ids,
                                             ProbeCache& probes) {
  return probes.get(model.identity, ids, [&] { return probe(model, ids); });
}

// Heads are the same for every text, so a short one tells them.
Json layers_json(const AskedModel& model, std::span<const std::int32_t> ids) {
  Json layers = Json::array();
  for (const std::vector<GroupProbe>& groups : probe(model, ids.first(1))) {
    Json heads = Json::array();
    for (const GroupProbe& group : groups) {
      const bool routed = group.plan.query_choice.defined();
      const std::int64_t clusters = routed ? group.plan.num_groups() / group.heads() : 0;
      for (std::int64_t head = 0; head < group.heads(); ++head) {
        heads.push_back({{"head", group.first_head + head},
                         {"pattern", group.pattern_name},
                         {"routed", routed},
                         {"clusters", clusters}});
      }
    }
    const std::size_t number = layers.size();
    layers.push_back({{"layer", number}, {"heads", std::move(heads)}});
  }
  return layers;
}

}  // namespace

Json page_tokens(const AskedModel& model, std::span<const std::int32_t> ids) {
  check(model, ids);
  Json pieces = Json::array();
  for (const TokenText& token : text_of(model, ids).tokens) pieces.push_back(token.shown);
  return {{"ids", std::vector<std::int32_t>(ids.begin(), ids.end())},
          {"pieces", std::move(pieces)},
          {"layers", layers_json(model, ids)}};
}

Json page_clusters(const AskedModel& model, std::span<const std::int32_t> ids, const AskedHead& head,
                   ProbeCache& probes) {
  check(model, ids);
  const auto all = token_clusters(*probes_of(model, ids, probes), head.layer, head.head);
  Json clusters = Json::array();
  // The entry before that of the first token is the start's. Of an image nothing carries the last value.
  for (std::size_t token = 0; token < ids.size(); ++token) {
    clusters.push_back(token + 1 < all.size() ? Json(all[token + 1]) : Json::array());
  }
  return {{"clusters", std::move(clusters)}};
}

Json page_attention(const AskedModel& model, std::span<const std::int32_t> ids, const AskedPosition& position,
                    ProbeCache& probes) {
  check(model, ids);
  AttentionText text = text_of(model, ids);
  text.position = position.position;
  const std::vector<HeadReading> readings = read_heads(
      *probes_of(model, ids, probes), {.token = position.position, .layer = position.layer, .head = position.head});
  return {{"model", model.name},
          {"tokens", ids.size()},
          {"position", position.position},
          {"predicts", label_of(text, position.position)},
          {"heads", readings_json(readings, text)}};
}

}  // namespace routing
