// Which earlier tokens does each head read at one position, and with what weight?
//
// Position i of a model is the prediction of token i. Its input, and what it carries as a key, is token i - 1: the
// sequence is shifted right by one, and position 0 carries the start, before any token. Here positions are those of the
// text: "at token i" means the prediction of token i, and what is read are the tokens that keys carry, from kStart on.
#pragma once

#include "routing/attention/head_probe.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace routing {

// [layer][head group], of one sequence.
using ModelProbes = std::vector<std::vector<GroupProbe>>;

inline constexpr std::int64_t kStart = -1;  // in the place of a token

struct ReadToken {
  std::int64_t token = kStart;
  double weight = 0.0;
  friend bool operator==(const ReadToken&, const ReadToken&) = default;
};

struct HeadReading {
  std::int64_t layer = 0;
  std::int64_t head = 0;  // counted over all heads of the layer
  std::string pattern = {};
  bool routed = false;
  std::vector<std::int32_t> clusters = {};  // that the query is a member of; routed heads only, and it may be in none
  std::vector<ReadToken> reads = {};        // ascending

  // The k with the most weight, the heaviest first; of equal ones the earlier.
  std::vector<ReadToken> top(std::size_t k) const;
};

struct ReadingQuestion {
  std::int64_t token = 0;                            // the one that is predicted
  std::optional<std::int64_t> layer = std::nullopt;  // all unless told
  std::optional<std::int64_t> head = std::nullopt;
};

// The chosen heads, by layer and head. Time and memory grow with the keys that they read. Throws a ConfigError for a
// token, layer or head that is not there; it names those that are.
std::vector<HeadReading> read_heads(const ModelProbes& probes, const ReadingQuestion& question);

// The clusters of every token in one routed head: those that the position which carries it is a member of, ascending;
// clusters[0] is that of the start, clusters[t + 1] that of token t. Empty for heads without clusters. Throws a
// ConfigError as above.
std::vector<std::vector<std::int32_t>> token_clusters(const ModelProbes& probes, std::int64_t layer, std::int64_t head);

}  // namespace routing
