// What a head reads, as text for a terminal and as JSON.
#pragma once

#include "lab/heads/head_reading.h"
#include "lab/heads/token_text.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace routing {

enum class ColourDepth { none, indexed, full };  // no colours, 256 colours, 24 bits

// By --color (auto, always or never), the environment (NO_COLOR, TERM, COLORTERM) and whether a person watches.
ColourDepth colour_depth(std::string_view option, bool is_terminal);

// The tokens of a text and the question that was asked of them.
struct AttentionText {
  std::vector<TokenText> tokens = {};
  std::int64_t position = 0;  // the token that is predicted; tokens.size() is the one after the last
  std::size_t top = 5;
  bool image = false;  // labels are places, not text
};

// "layer 2 head 5, routing, clusters 3 11: reads 42 tokens".
std::string reading_heading(const HeadReading& reading);

// The text before the position and a little after it; what is read has a coloured background, the more the stronger,
// and the predicted token is underlined. Stretches without anything of weight are left out ("…").
std::string coloured_text(const HeadReading& reading, const AttentionText& text, ColourDepth depth);

// The heaviest tokens: weight, place and label, a line each.
std::string top_lines(const HeadReading& reading, const AttentionText& text);

// "(start)" for kStart, "(next)" after the end.
std::string label_of(const AttentionText& text, std::int64_t token);

// The same in quotes where it is text, so that a space can be seen.
std::string quoted_label(const AttentionText& text, std::int64_t token);

// [{"layer", "head", "pattern", "clusters", "reads": [{"position", "token", "weight"}]}]; "clusters" of routed heads
// only.
nlohmann::ordered_json readings_json(const std::vector<HeadReading>& readings, const AttentionText& text);

}  // namespace routing
