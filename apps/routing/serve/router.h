// Which handler answers which address.
#pragma once

#include "routing/serving/http/reply.h"
#include "routing/serving/http/wire/message.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace routing {

// One request on its way to a handler: what it asks, and what stands in the places of the pattern.
struct Asked {
  http::Request request = {};
  std::map<std::string, std::string> places = {};  // "id" of /api/runs/{id}/metrics
  std::shared_ptr<http::Reply> reply = {};
};
using AskedHandler = std::function<void(Asked asked)>;

class Router {
 public:
  // "GET", "/api/runs/{id}/metrics". A place stands for one part of the path, "{name...}" at the end for all that are
  // left. HEAD is answered as GET.
  void add(const std::string& method, const std::string& pattern, AskedHandler handler);
  // Throws an ApiError: 404, or 405 whose `allow` names the methods there are.
  const AskedHandler& find(Asked& asked) const;
  // "GET /health", in the order in which they were added.
  std::vector<std::string> routes() const;

 private:
  struct Route {
    std::string method;
    std::string pattern;
    std::vector<std::string> parts;
    AskedHandler handler;
  };
  static bool fits(const Route& route, Asked& asked);
  std::vector<Route> routes_;
};

}  // namespace routing
