#include "routing/config/text/toml_keys.h"

#include <algorithm>
#include <string>

namespace routing {
namespace {

// Where the text that begins with this quote ends: one past its closing quotes, or at the line end that breaks it.
std::size_t end_of_text(std::string_view toml, std::size_t begin) {
  const char quote = toml[begin];
  const bool escapes = quote == '"';
  const std::string fence(3, quote);
  if (toml.substr(begin).starts_with(fence)) {
    for (std::size_t at = begin + 3; at < toml.size(); ++at) {
      if (escapes && toml[at] == '\\') {
        ++at;
      } else if (toml.substr(at).starts_with(fence)) {
        // Up to two quotes may stand before the closing three.
        std::size_t quotes = 3;
        while (quotes < 5 && at + quotes < toml.size() && toml[at + quotes] == quote) ++quotes;
        return at + quotes;
      }
    }
    return toml.size();
  }
  for (std::size_t at = begin + 1; at < toml.size() && toml[at] != '\n'; ++at) {
    if (escapes && toml[at] == '\\') {
      ++at;
    } else if (toml[at] == quote) {
      return at + 1;
    }
  }
  return std::min(toml.find('\n', begin), toml.size());
}

bool is_beyond_ascii(char letter) {
  return static_cast<unsigned char>(letter) >= 0x80;
}

std::size_t line_ends_in(std::string_view text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

// Where a letter beyond ASCII follows a backslash of a text, white space left out; npos if nowhere.
std::size_t letter_behind_backslash(std::string_view text) {
  if (text.front() != '"') return std::string_view::npos;
  for (std::size_t at = text.find('\\'); at < text.size(); at = text.find('\\', at)) {
    const std::size_t next = std::min(text.find_first_not_of(" \t\r\n", at + 1), text.size());
    if (next < text.size() && is_beyond_ascii(text[next])) return next;
    at = std::max(at + 2, next);
  }
  return std::string_view::npos;
}

}  // namespace

std::optional<std::size_t> line_of_deep_key(std::string_view toml, std::size_t most) {
  std::size_t line = 1;
  std::size_t parts = 1;
  for (std::size_t at = 0; at < toml.size();) {
    const char letter = toml[at];
    if (letter == '"' || letter == '\'') {
      const std::size_t end = end_of_text(toml, at);
      const std::string_view text = toml.substr(at, end - at);
      line += line_ends_in(text);
      at = end;
      continue;
    }
    if (letter == '#') {
      at = std::min(toml.find('\n', at), toml.size());
      continue;
    }
    if (letter == '.' && ++parts > most) return line;
    if (std::string_view("=,[]{}\n").find(letter) != std::string_view::npos) parts = 1;
    if (letter == '\n') ++line;
    ++at;
  }
  return std::nullopt;
}

std::optional<std::size_t> line_of_stray_letter(std::string_view toml) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (toml.starts_with(kByteOrderMark)) toml.remove_prefix(kByteOrderMark.size());
  for (std::size_t at = 0; at < toml.size();) {
    std::size_t stray = std::string_view::npos;
    std::size_t next = at + 1;
    if (toml[at] == '"' || toml[at] == '\'') {
      next = end_of_text(toml, at);
      stray = letter_behind_backslash(toml.substr(at, next - at));
      if (stray != std::string_view::npos) stray += at;
    } else if (toml[at] == '#') {
      next = std::min(toml.find('\n', at), toml.size());
    } else if (is_beyond_ascii(toml[at])) {
      stray = at;
    }
    if (stray != std::string_view::npos) return 1 + line_ends_in(toml.substr(0, stray));
    at = next;
  }
  return std::nullopt;
}

}  // namespace routing
