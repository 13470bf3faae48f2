#include "train/preset_choice.h"

#include <algorithm>
#include <bit>

namespace routing {
namespace {

// A wider model learns more from more text, and the same text by heart sooner.
constexpr std::int64_t kLeastTextForMedium = 4'000'000;
constexpr std::int64_t kShortestSequence = 32;

std::string setting(const char* key, std::int64_t value) {
  return std::string(key) + "=" + std::to_string(value);
}

PresetChoice for_images(const OwnData& data) {
  const std::int64_t values = 3 * data.image_height * data.image_width;
  const std::int64_t two_rows = std::min(values, 6 * data.image_width);
  return {.sizes = {{.preset = "my-images"}},
          .settings = {setting("model.image_height", data.image_height), setting("model.image_width", data.image_width),
                       setting("train.sequence_length", values), setting("local.window", two_rows),
                       setting("routing.window", std::max(two_rows, values / 16))}};
}

std::vector<QuickstartSize> sizes_for(const OwnData& data) {
  if (data.tokens == TokenKind::words) return {{.preset = "my-words"}};
  if (data.tokens == TokenKind::subwords) return {{.preset = "my-subwords"}};
  if (data.train_tokens < kLeastTextForMedium) return {{.preset = "my-text"}};
  return {{.preset = "my-text"}, {.preset = "my-text-medium", .least_bytes = quickstart_sizes()[1].least_bytes}};
}

}  // namespace

std::int64_t longest_sequence(std::int64_t train_tokens) {
  const auto half = static_cast<std::uint64_t>(std::max<std::int64_t>(2, train_tokens / 2));
  return std::max(kShortestSequence, static_cast<std::int64_t>(std::bit_floor(half)));
}

PresetChoice preset_for(const OwnData& data) {
  if (data.image_height > 0) return for_images(data);
  PresetChoice choice{.sizes = sizes_for(data)};
  // Of the presets of text.
  constexpr std::int64_t kSequence = 1024;
  constexpr std::int64_t kLocalWindow = 128;
  constexpr std::int64_t kRoutingWindow = 192;
  const std::int64_t length = data.sequence_length > 0 ? data.sequence_length : longest_sequence(data.train_tokens);
  if (length < kSequence) choice.settings.push_back(setting("train.sequence_length", length));
  if (length < kLocalWindow) choice.settings.push_back(setting("local.window", length));
  if (length < kRoutingWindow) choice.settings.push_back(setting("routing.window", length));
  return choice;
}

}  // namespace routing
