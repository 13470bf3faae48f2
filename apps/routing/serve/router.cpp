#include "serve/router.h"

#include "serve/request/api_error.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

namespace routing {
namespace {

std::vector<std::string> parts_of(std::string_view path) {
  std::vector<std::string> parts;
  for (std::size_t begin = 1; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    parts.emplace_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool is_place(const std::string& part) {
  return part.starts_with('{') && part.ends_with('}');
}

// Where clients of other servers look first.
std::string advice_for(const std::string& path) {
  if (path.ends_with("/chat/completions")) {
    return "models here continue texts and know no chat: POST /v1/completions with \"prompt\"; ";
  }
  if (path == "/completion" || path == "/completions" || path == "/v1/completion") return "POST /v1/completions; ";
  return {};
}

}  // namespace

void Router::add(const std::string& method, const std::string& pattern, AskedHandler handler) {
  routes_.push_back({method, pattern, parts_of(pattern), std::move(handler)});
}

bool Router::fits(const Route& route, Asked& asked) {
  const std::vector<std::string>& given = asked.request.segments;
  std::map<std::string, std::string> places;
  for (std::size_t i = 0; i < route.parts.size(); ++i) {
    const std::string& part = route.parts[i];
    if (i >= given.size()) return false;
    if (!is_place(part)) {
      if (part != given[i]) return false;
      continue;
    }
    std::string name = part.substr(1, part.size() - 2);
    if (name.ends_with("...")) {
      std::string rest = given[i];
      for (std::size_t more = i + 1; more < given.size(); ++more) rest += "/" + given[more];
      name.resize(name.size() - 3);
      places[name] = rest;
      asked.places = std::move(places);
      return true;
    }
    places[name] = given[i];
  }
  if (route.parts.size() != given.size()) return false;
  asked.places = std::move(places);
  return true;
}

const AskedHandler& Router::find(Asked& asked) const {
  const std::string method = asked.request.method == "HEAD" ? "GET" : asked.request.method;
  std::string allowed;
  for (const Route& route : routes_) {
    if (!fits(route, asked)) continue;
    if (route.method == method) return route.handler;
    allowed += (allowed.empty() ? "" : ", ") + route.method + (route.method == "GET" ? ", HEAD" : "");
  }
  if (allowed.empty()) {
    throw ApiError(404, "there is nothing at " + asked.request.path + "; " + advice_for(asked.request.path) +
                            "GET /openapi.json lists what there is");
  }
  throw ApiError(405, asked.request.path + " takes " + allowed + ", not " + asked.request.method).with_allow(allowed);
}

std::vector<std::string> Router::routes() const {
  std::vector<std::string> all;
  for (const Route& route : routes_) all.push_back(route.method + " " + route.pattern);
  return all;
}

}  // namespace routing
