// What the page asks of a model, as JSON (docs/server.md): its tokens and heads, the clusters of a text, and what heads
// read at one place of it, as `routing analyze attention --json` tells it.
#pragma once

#include "routing/data/tokenizers/tokenizer.h"
#include "routing/model/sequence_model.h"
#include "routing/ops/precision.h"
#include "serve/page/probe_cache.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace routing {

// In evaluation mode, and not changed while `identity` is the same.
struct AskedModel {
  std::string name = {};       // the run's id, for answers
  std::uint64_t identity = 0;  // no two models of the process ever have the same
  SequenceModel* model = nullptr;
  const Tokenizer* tokenizer = nullptr;  // nothing of a model of images
  MatmulPrecision precision = MatmulPrecision::fp32;
};

// POST /api/tokens. All throw a ConfigError for a model that reads a source, no tokens, or ids that it does not know.
nlohmann::ordered_json page_tokens(const AskedModel& model, std::span<const std::int32_t> ids);

// POST /api/clusters: an entry for each token, empty where it is in no cluster or its head has none. A ConfigError for
// a layer or head that is not there; it names those that are.
struct AskedHead {
  std::int64_t layer = 0;
  std::int64_t head = 0;
};
nlohmann::ordered_json page_clusters(const AskedModel& model, std::span<const std::int32_t> ids, const AskedHead& head,
                                     ProbeCache& probes);

// POST /api/attention: the chosen heads; all unless told. Errors as above, also for the position.
struct AskedPosition {
  std::int64_t position = 0;
  std::optional<std::int64_t> layer = std::nullopt;
  std::optional<std::int64_t> head = std::nullopt;
};
nlohmann::ordered_json page_attention(const AskedModel& model, std::span<const std::int32_t> ids,
                                      const AskedPosition& position, ProbeCache& probes);

}  // namespace routing
