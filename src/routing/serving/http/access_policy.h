// Who may ask.
//
// A page of any site can send requests to a server on the machine of who looks at it, and with a name that its owner
// points to 127.0.0.1 (DNS rebinding) even read the answers. So on loopback the Host must be one of this machine, and
// an Origin must be the server's own, or one that was allowed by name.
#pragma once

#include "routing/serving/http/http_server.h"

#include <functional>
#include <string>
#include <vector>

namespace routing::http {

struct AccessPolicy {
  // Hosts must be localhost, an address of loopback, or in own_names. Otherwise own_names are all, if there are any.
  bool loopback = true;
  std::vector<std::string> own_names = {};   // without port
  std::vector<std::string> tokens = {};      // if there are any, every request must show one of them …
  std::vector<std::string> open_paths = {};  // … but for these paths
  std::vector<std::string> origins = {};     // "https://example.org", or "*" for all, whose pages may ask
};

// A refusal has 403 or 401 and is made by `error_body`; a preflight request (OPTIONS) of an allowed origin is answered
// with 204. `headers` are those of CORS.
Admission check_access(const AccessPolicy& policy, const Request& request,
                       const std::function<Response(int status, const std::string& message)>& error_body);

}  // namespace routing::http
