#include "routing/evaluation/recurrence.h"

#include "routing/core/error.h"
#include "routing/core/hash.h"
#include "routing/evaluation/recall_accuracy.h"

#include <algorithm>
#include <cstddef>
#include <unordered_map>
#include <variant>

namespace routing {
namespace {

std::uint64_t hash_of_tokens(std::span<const std::int64_t> tokens) {
  return xxhash64(std::as_bytes(tokens));
}

TargetSum target_sum(const NatsSum& nats) {
  return {.targets = nats.tokens(), .nats = nats.total()};
}

}  // namespace

std::vector<std::int64_t> recurrence_distances(std::span<const std::int64_t> tokens, std::int64_t context) {
  require<InputError>(context >= 1, "recurrence: a context of ", context, " tokens; take at least 1");
  std::vector<std::int64_t> distances(tokens.size(), 0);
  const auto size = static_cast<std::size_t>(context);
  // Keys are where a context begins; equal contexts are one key, so that nothing hangs on a hash.
  const auto at = [&](std::size_t begin) { return tokens.subspan(begin, size); };
  const auto hash = [&](std::size_t begin) { return static_cast<std::size_t>(hash_of_tokens(at(begin))); };
  const auto equal = [&](std::size_t one, std::size_t other) { return std::ranges::equal(at(one), at(other)); };
  std::unordered_map<std::size_t, std::size_t, decltype(hash), decltype(equal)> last(tokens.size(), hash, equal);
  for (std::size_t target = size; target < tokens.size(); ++target) {
    const auto [found, is_new] = last.try_emplace(target - size, target);
    if (is_new) continue;
    distances[target] = static_cast<std::int64_t>(target - found->second);
    found->second = target;
  }
  return distances;
}

Recurrence recurrence_class(std::int64_t distance, std::int64_t reach) {
  if (distance == 0) return Recurrence::never;
  return distance <= reach ? Recurrence::near : Recurrence::far;
}

std::int64_t local_reach(const ExperimentConfig& config) {
  std::int64_t reach = 0;
  for (std::int64_t layer = 0; layer < config.model.layers; ++layer) {
    std::int64_t widest = 0;
    for (const HeadGroupConfig& group : attention_of_layer(config, layer).head_groups) {
      const auto* const local = std::get_if<LocalPattern>(&group.pattern);
      if (local == nullptr) continue;
      widest = std::max(widest, local->form == LocalForm::block ? 2 * local->window : local->window);
    }
    reach += widest;
  }
  return reach;
}

std::int64_t usual_context(TokenKind kind) {
  return kind == TokenKind::words || kind == TokenKind::subwords ? 2 : 8;
}

TargetSum WindowRecurrence::all() const {
  TargetSum sum;
  for (const TargetSum& part : classes) {
    sum.targets += part.targets;
    sum.nats += part.nats;
  }
  return sum;
}

WindowRecurrence window_recurrence(const ScoredWindow& window, const RecurrenceOptions& options) {
  require<InputError>(window.tokens.size() == window.nats.size(), "recurrence: ", window.tokens.size(),
                      " tokens, but the nats of ", window.nats.size(), "; give one for each");
  const std::vector<std::int64_t> distances = recurrence_distances(window.tokens, options.context);
  std::array<NatsSum, kEvery<Recurrence>.size()> classes;
  std::vector<NatsSum> octaves;
  for (auto i = static_cast<std::size_t>(window.scored_from); i < distances.size(); ++i) {
    const auto nats = static_cast<double>(window.nats[i]);
    classes.at(static_cast<std::size_t>(recurrence_class(distances[i], options.reach))).add(nats);
    if (distances[i] == 0) continue;
    const auto octave = static_cast<std::size_t>(octave_of(distances[i]));
    if (octaves.size() <= octave) octaves.resize(octave + 1);
    octaves[octave].add(nats);
  }
  WindowRecurrence result{.tokens_hash = hash_of_tokens(window.tokens)};
  std::ranges::transform(classes, result.classes.begin(), target_sum);
  for (const NatsSum& octave : octaves) result.octaves.push_back(target_sum(octave));
  return result;
}

}  // namespace routing
