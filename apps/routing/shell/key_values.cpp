#include "shell/key_values.h"

#include "routing/config/keys.h"
#include "routing/core/error.h"

#include <algorithm>

namespace routing {
namespace {

template <HasWords... Enums>
std::vector<std::string> all_words() {
  std::vector<std::string> words;
  const auto append = [&words](std::string_view word) {
    if (std::find(words.begin(), words.end(), word) == words.end()) words.emplace_back(word);
  };
  (std::for_each(kEvery<Enums>.begin(), kEvery<Enums>.end(), [&](Enums value) { append(to_string(value)); }), ...);
  return words;
}

bool takes(const ConfigKey<ExperimentConfig>& key, const std::string& word) {
  ExperimentConfig config;
  try {
    key.set(config, word);
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

}  // namespace

// Which enumeration a key has is known to its reader alone, so it is asked, with every word there is. A key that takes
// nonsense is free text.
std::vector<std::string> key_values(std::string_view name) {
  if (name == kRoutingPresetKey) return all_words<RoutingPreset>();
  const auto* const key = find_key(experiment_key_table(), name);
  if (key == nullptr) return {};
  if (key->kind == ValueKind::truth) return {"true", "false"};
  if (key->kind != ValueKind::text || takes(*key, "no such word")) return {};
  std::vector<std::string> words =
      all_words<NormPlacement, FeedforwardKind, PositionKind, Compression, StartSymbol, OptimizerKind, DataFormat,
                TokenKind, ScheduleKind, DataOrder, Precision, SelfRule, RepeatRule, Merge, RelativePosition, Rotary,
                RoutingNorm, LocalForm, PatternKind, RoutingSelection, RoutingBalance, CentroidUpdate, UpdateFrom,
                CentroidInit, SeparateUpdate>();
  // Keys that check their text by themselves.
  for (const char* const word : {"all", "odd", "even", "train", "valid", "test"}) words.emplace_back(word);
  words.erase(std::remove_if(words.begin(), words.end(), [&](const std::string& word) { return !takes(*key, word); }),
              words.end());
  return words;
}

}  // namespace routing
