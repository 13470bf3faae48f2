#include "routing/serving/http/wire/request_target.h"

#include "routing/core/utf8.h"

#include <algorithm>

namespace routing::http {
namespace {

int hex_digit(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  if (letter >= 'A' && letter <= 'F') return letter - 'A' + 10;
  return -1;
}

bool is_control(char letter) {
  return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f;
}

bool climbs(std::string_view segment) {
  while (true) {
    const std::size_t slash = segment.find('/');
    const std::string_view part = segment.substr(0, slash);
    if (part == "." || part == "..") return true;
    if (slash == std::string_view::npos) return false;
    segment.remove_prefix(slash + 1);
  }
}

std::optional<Refusal> add_segment(std::string_view text, Target& target) {
  const std::optional<std::string> decoded = percent_decoded(text, Plus::is_plus);
  if (!decoded) return Refusal{400, "the path has a '%' without two hexadecimal digits after it"};
  if (std::any_of(decoded->begin(), decoded->end(), is_control)) {
    return Refusal{400, "the path has a control character"};
  }
  if (first_invalid_utf8(*decoded)) return Refusal{400, "the path is not UTF-8"};
  if (climbs(*decoded)) return Refusal{400, "the path has a part that is '.' or '..'"};
  target.path += '/';
  target.path += *decoded;
  target.segments.push_back(*decoded);
  return std::nullopt;
}

// What stands before the path in "http://host:80/path" goes to the authority.
std::optional<Refusal> take_authority(std::string_view& text, Target& target) {
  constexpr std::string_view kScheme = "http://";
  const auto same_letter = [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b - 'A' + 'a' : b); };
  if (text.size() < kScheme.size() || !std::equal(kScheme.begin(), kScheme.end(), text.begin(), same_letter)) {
    return Refusal{400, "the target of the request is no path; it begins with '/'"};
  }
  text.remove_prefix(kScheme.size());
  const std::size_t end = std::min(text.find_first_of("/?"), text.size());
  target.authority = text.substr(0, end);
  if (target.authority.empty() || target.authority.find('@') != std::string::npos) {
    return Refusal{400, "the target of the request names no host"};
  }
  text.remove_prefix(end);
  return std::nullopt;
}

std::optional<Refusal> check_query(std::string_view query) {
  const std::optional<std::string> decoded = percent_decoded(query, Plus::is_space);
  if (!decoded) return Refusal{400, "the query has a '%' without two hexadecimal digits after it"};
  if (decoded->find('\0') != std::string::npos || first_invalid_utf8(*decoded)) {
    return Refusal{400, "the query is not UTF-8 text"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> percent_decoded(std::string_view text, Plus plus) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus == Plus::is_space) {
      decoded += ' ';
    } else if (text[i] != '%') {
      decoded += text[i];
    } else {
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
      if (low < 0) return std::nullopt;
      decoded += static_cast<char>(16 * high + low);
      i += 2;
    }
  }
  return decoded;
}

std::optional<Refusal> read_target(std::string_view method, std::string_view text, Target& target) {
  target = {};
  const auto is_visible = [](char letter) { return letter > 0x20 && letter < 0x7f; };
  if (!std::all_of(text.begin(), text.end(), is_visible) || text.find('#') != std::string_view::npos) {
    return Refusal{400, "the target of the request has a character that must be percent-encoded"};
  }
  if (text == "*") {
    if (method != "OPTIONS") return Refusal{400, "only OPTIONS can ask for '*'"};
    target.path = "*";
    return std::nullopt;
  }
  if (!text.starts_with('/')) {
    if (std::optional<Refusal> refusal = take_authority(text, target)) return refusal;
  }
  const std::size_t question = text.find('?');
  if (question != std::string_view::npos) {
    target.query = text.substr(question + 1);
    if (std::optional<Refusal> refusal = check_query(target.query)) return refusal;
    text = text.substr(0, question);
  }
  if (text.empty()) text = "/";  // of an authority without a path
  while (!text.empty()) {
    text.remove_prefix(1);
    const std::size_t end = std::min(text.find('/'), text.size());
    if (std::optional<Refusal> refusal = add_segment(text.substr(0, end), target)) return refusal;
    text.remove_prefix(end);
  }
  return std::nullopt;
}

}  // namespace routing::http
