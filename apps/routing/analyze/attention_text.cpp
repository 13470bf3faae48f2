#include "analyze/attention_text.h"

#include "shell/output.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <iomanip>
#include <sstream>

namespace routing {
namespace {

constexpr std::int64_t kAround = 12;  // tokens shown on both sides of one that is read
constexpr std::int64_t kBefore = 40;  // tokens shown before the position
constexpr std::int64_t kBehind = 12;  // and after it
constexpr double kLeastShown = 0.01;  // weight of a token whose surroundings are shown
constexpr std::string_view kPlain = "\033[0m";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// From pale to strong orange with black letters on it.
std::string background(double share, ColourDepth depth) {
  if (depth == ColourDepth::full) {
    const auto channel = [&](double from, double to) {
      return std::to_string(static_cast<int>(std::lround(from + (to - from) * share)));
    };
    return "\033[38;2;0;0;0;48;2;255;" + channel(245, 110) + ";" + channel(225, 0) + "m";
  }
  // Of the 256 colours those of the cube that go the same way.
  constexpr std::array kSteps{230, 229, 223, 222, 215, 208};
  const auto step = static_cast<std::size_t>(std::lround(share * static_cast<double>(kSteps.size() - 1)));
  return "\033[38;5;16;48;5;" + std::to_string(kSteps.at(step)) + "m";
}

// The weight of what each token shows: of a character of several tokens, all of theirs.
std::vector<double> shown_weights(const HeadReading& reading, const AttentionText& text) {
  std::vector<double> weights(text.tokens.size(), 0.0);
  for (const ReadToken& read : reading.reads) {
    std::int64_t owner = read.token;
    while (owner > 0 && text.tokens[static_cast<std::size_t>(owner)].shown.empty()) --owner;
    if (owner >= 0) weights[static_cast<std::size_t>(owner)] += read.weight;
  }
  return weights;
}

std::vector<bool> shown_tokens(const HeadReading& reading, const AttentionText& text) {
  std::vector<bool> shown(text.tokens.size(), false);
  const auto size = static_cast<std::int64_t>(shown.size());
  const auto show = [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = std::max<std::int64_t>(0, first); i <= std::min(last, size - 1); ++i) {
      shown[static_cast<std::size_t>(i)] = true;
    }
  };
  show(text.position - kBefore, text.position + kBehind);
  for (const ReadToken& read : reading.reads) {
    if (read.weight >= kLeastShown) show(read.token - kAround, read.token + kAround);
  }
  for (const ReadToken& read : reading.top(text.top)) show(read.token - kAround, read.token + kAround);
  return shown;
}

// The escape codes of a token end before a line does: terminals would colour the rest of the line.
std::string wrapped(const std::string& shown, const std::string& code) {
  if (code.empty()) return shown;
  std::string text = code;
  for (const char letter : shown) {
    if (letter != '\n') {
      text += letter;
      continue;
    }
    text += "⏎" + std::string(kPlain) + "\n" + code;
  }
  return text + std::string(kPlain);
}

}  // namespace

ColourDepth colour_depth(std::string_view option, bool is_terminal) {
  if (option == "never") return ColourDepth::none;
  const bool wanted = is_terminal && environment("NO_COLOR").empty() && environment("TERM") != "dumb";
  if (option == "auto" && !wanted) return ColourDepth::none;
  const std::string depth = environment("COLORTERM");
  return depth == "truecolor" || depth == "24bit" ? ColourDepth::full : ColourDepth::indexed;
}

std::string label_of(const AttentionText& text, std::int64_t token) {
  if (token == kStart) return "(start)";
  if (token >= static_cast<std::int64_t>(text.tokens.size())) return "(next)";
  return text.tokens[static_cast<std::size_t>(token)].label;
}

std::string quoted_label(const AttentionText& text, std::int64_t token) {
  const bool is_text = !text.image && token >= 0 && token < static_cast<std::int64_t>(text.tokens.size());
  return is_text ? "\"" + label_of(text, token) + "\"" : label_of(text, token);
}

std::string reading_heading(const HeadReading& reading) {
  std::string text =
      "layer " + std::to_string(reading.layer) + " head " + std::to_string(reading.head) + ", " + reading.pattern;
  if (reading.routed) {
    text += reading.clusters.empty() ? ", no cluster" : reading.clusters.size() == 1 ? ", cluster" : ", clusters";
    for (const std::int32_t cluster : reading.clusters) text += " " + std::to_string(cluster);
  }
  return text + ": reads " + std::to_string(reading.reads.size()) + (reading.reads.size() == 1 ? " token" : " tokens");
}

std::string coloured_text(const HeadReading& reading, const AttentionText& text, ColourDepth depth) {
  const std::vector<double> weights = shown_weights(reading, text);
  const std::vector<bool> shown = shown_tokens(reading, text);
  const double most = weights.empty() ? 0.0 : *std::max_element(weights.begin(), weights.end());
  std::string result;
  for (std::size_t i = 0; i < text.tokens.size(); ++i) {
    if (!shown[i]) {
      const bool gap_begins = i == 0 || shown[i - 1];
      if (gap_begins) result += "…";
      continue;
    }
    std::string code;
    // The root lets small weights be seen beside large ones.
    if (weights[i] > 0.0 && most > 0.0) code = background(std::sqrt(weights[i] / most), depth);
    if (static_cast<std::int64_t>(i) == text.position) code += "\033[1;4m";
    result += wrapped(text.tokens[i].shown, code);
  }
  return result + "\n";
}

std::string top_lines(const HeadReading& reading, const AttentionText& text) {
  std::ostringstream lines;
  for (const ReadToken& read : reading.top(text.top)) {
    lines << "  " << fixed_digits(read.weight, 4) << "  " << std::setw(6) << read.token << "  "
          << quoted_label(text, read.token) << "\n";
  }
  return lines.str();
}

namespace {

using Json = nlohmann::ordered_json;

Json json_of(const HeadReading& reading, const AttentionText& text) {
  Json reads = Json::array();
  for (const ReadToken& read : reading.reads) {
    reads.push_back({{"position", read.token}, {"token", label_of(text, read.token)}, {"weight", read.weight}});
  }
  Json object{{"layer", reading.layer}, {"head", reading.head}, {"pattern", reading.pattern}};
  if (reading.routed) object["clusters"] = reading.clusters;
  object["reads"] = std::move(reads);
  return object;
}

}  // namespace

Json readings_json(const std::vector<HeadReading>& readings, const AttentionText& text) {
  Json heads = Json::array();
  for (const HeadReading& reading : readings) heads.push_back(json_of(reading, text));
  return heads;
}

}  // namespace routing
