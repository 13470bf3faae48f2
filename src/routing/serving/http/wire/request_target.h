// The target of a request line: what is asked for, decoded once and checked.
//
//   /runs/exp%2Fa/metrics?after=3     path "/runs/exp/a/metrics", segments {"runs", "exp/a", "metrics"}, query
//   "after=3" http://host:80/runs               the same with an authority: proxies ask so
//   *                                 of OPTIONS only
//
// Refused with 400: anything but visible ASCII; '#'; a '%' without two hexadecimal digits; what decodes to control
// characters or to something that is not UTF-8; a segment, or a part of one between decoded slashes, that is "." or
// "..". Nobody has to ask whether a path climbs.
#pragma once

#include "routing/serving/http/wire/refusal.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace routing::http {

struct Target {
  std::string path;
  std::vector<std::string> segments;
  std::string query;
  std::string authority;  // empty but for http://…
};

// Fills `target`, or says why not.
std::optional<Refusal> read_target(std::string_view method, std::string_view text, Target& target);

// Nothing where a '%' has no two hexadecimal digits after it.
enum class Plus { is_plus, is_space };
std::optional<std::string> percent_decoded(std::string_view text, Plus plus);

}  // namespace routing::http
