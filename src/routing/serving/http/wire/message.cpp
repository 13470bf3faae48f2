#include "routing/serving/http/wire/message.h"

#include "routing/serving/http/wire/request_target.h"

#include <algorithm>

namespace routing::http {
namespace {

char small(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

}  // namespace

bool same_word(std::string_view one, std::string_view other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [](char a, char b) { return small(a) == small(b); });
}

std::optional<std::string> find_header(const Headers& headers, std::string_view name) {
  std::optional<std::string> found;
  for (const auto& [key, value] : headers) {
    if (!same_word(key, name)) continue;
    if (found) {
      *found += ", " + value;
    } else {
      found = value;
    }
  }
  return found;
}

std::optional<std::string> query_value(const Request& request, std::string_view name) {
  std::string_view rest = request.query;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('&'), rest.size());
    const std::string_view pair = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::size_t equals = std::min(pair.find('='), pair.size());
    if (percent_decoded(pair.substr(0, equals), Plus::is_space) != name) continue;
    return percent_decoded(pair.substr(std::min(equals + 1, pair.size())), Plus::is_space);
  }
  return std::nullopt;
}

}  // namespace routing::http
