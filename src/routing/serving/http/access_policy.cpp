#include "routing/serving/http/access_policy.h"

#include "routing/serving/http/tokens.h"

#include <algorithm>
#include <string_view>

namespace routing::http {
namespace {

bool contains_word(const std::vector<std::string>& words, std::string_view word) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& each) { return same_word(each, word); });
}

// Without the port: "[::1]:8080" is "::1".
std::string host_name(std::string_view host) {
  if (host.starts_with('[')) {
    const std::size_t end = host.find(']');
    return end == std::string_view::npos ? "" : std::string(host.substr(1, end - 1));
  }
  return std::string(host.substr(0, host.find(':')));
}

bool is_loopback_name(const std::string& name) {
  if (same_word(name, "localhost")) return true;
  try {
    return is_loopback(name);
  } catch (const InputError&) {
    return false;  // a name, not an address
  }
}

bool is_own_host(const AccessPolicy& policy, std::string_view host) {
  const std::string name = host_name(host);
  if (contains_word(policy.own_names, name)) return true;
  return policy.loopback ? is_loopback_name(name) : policy.own_names.empty();
}

bool shows_token(const AccessPolicy& policy, const Request& request) {
  const std::string shown = request.header("authorization").value_or("");
  bool matches = false;
  // All of them, so that the time does not tell which.
  for (const std::string& token : policy.tokens) matches |= token_matches(shown, token);
  return matches;
}

bool is_preflight(const Request& request) {
  return request.method == "OPTIONS" && request.header("access-control-request-method").has_value();
}

}  // namespace

Admission check_access(const AccessPolicy& policy, const Request& request,
                       const std::function<Response(int status, const std::string& message)>& error_body) {
  Admission admission;
  const std::string host = request.header("host").value_or("");
  if (!is_own_host(policy, host)) {
    admission.refusal = error_body(403, "this server does not answer as \"" + host + "\"");
    return admission;
  }
  const std::optional<std::string> origin = request.header("origin");
  const bool own_origin = origin && !host.empty() && same_word(*origin, "http://" + host);
  const bool all_origins = contains_word(policy.origins, "*");
  if (origin && !own_origin && !all_origins && !contains_word(policy.origins, *origin)) {
    admission.refusal = error_body(403, "pages of " + *origin + " may not ask this server");
    return admission;
  }
  if (origin && !own_origin) {
    admission.headers = {{"Access-Control-Allow-Origin", all_origins ? "*" : *origin}, {"Vary", "Origin"}};
    if (is_preflight(request)) {
      admission.headers.emplace_back("Access-Control-Allow-Methods", "GET, POST");
      admission.headers.emplace_back("Access-Control-Allow-Headers", "Authorization, Content-Type");
      admission.headers.emplace_back("Access-Control-Max-Age", "600");
      // Browsers send no token with this question.
      admission.refusal = Response{.status = 204, .content_type = ""};
      return admission;
    }
    admission.headers.emplace_back("Access-Control-Expose-Headers", "Retry-After");
  }
  const bool open =
      std::find(policy.open_paths.begin(), policy.open_paths.end(), request.path) != policy.open_paths.end();
  if (!policy.tokens.empty() && !open && !shows_token(policy, request)) {
    admission.refusal =
        error_body(401, request.header("authorization") ? "the token is not one of this server's"
                                                        : "this server wants a token: Authorization: Bearer TOKEN");
    admission.refusal->headers.emplace_back("WWW-Authenticate", "Bearer");
  }
  return admission;
}

}  // namespace routing::http
