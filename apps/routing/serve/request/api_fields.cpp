#include "serve/request/api_fields.h"

#include "routing/core/nearest_name.h"
#include "serve/request/api_error.h"
#include "shell/json_text.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace routing {
namespace {

using Json = nlohmann::ordered_json;

// Of the body; its own braces are one.
constexpr int kDeepest = 8;
constexpr std::size_t kShownValue = 60;

std::string shown(const Json& value) {
  const std::string text = json_text(value);
  return text.size() <= kShownValue ? text : text.substr(0, kShownValue - 3) + "...";
}

[[noreturn]] void refuse(const std::string& name, const Json& value, const std::string& rule) {
  throw ApiError(400, name + " is " + shown(value) + ", but must be " + rule, name);
}

// nlohmann::json keeps one of two equal keys without a word, and takes any depth that the stack holds.
Json parse_strictly(std::string_view body) {
  std::vector<std::set<std::string>> keys;
  const Json::parser_callback_t look = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kDeepest) throw ApiError(400, "the body is nested deeper than any request needs");
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second) {
      throw ApiError(400, "the field '" + parsed.get<std::string>() + "' stands twice in the body; give it once");
    }
    return true;
  };
  try {
    return Json::parse(body.begin(), body.end(), look);
  } catch (const Json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 3: …"
    const std::string message = error.what();
    const std::size_t end_of_name = message.find("] ");
    throw ApiError(
        400, "the body is not JSON: " + (end_of_name == std::string::npos ? message : message.substr(end_of_name + 2)));
  }
}

}  // namespace

ApiFields::ApiFields(std::string_view body) {
  if (body.empty()) throw ApiError(400, "the body is empty, but must be a JSON object, at least {}");
  object_ = parse_strictly(body);
  if (!object_.is_object()) throw ApiError(400, "the body is " + shown(object_) + ", but must be a JSON object");
}

bool ApiFields::has(const std::string& name) const {
  const auto found = object_.find(name);
  return found != object_.end() && !found->is_null();
}

const Json& ApiFields::value(const std::string& name) {
  static const Json nothing = nullptr;
  known_.push_back(name);
  const auto found = object_.find(name);
  return found == object_.end() ? nothing : *found;
}

std::string ApiFields::text(const std::string& name, const std::string& without) {
  const Json& given = value(name);
  if (given.is_null()) return without;
  if (!given.is_string()) refuse(name, given, "a text");
  return given.get<std::string>();
}

bool ApiFields::flag(const std::string& name, bool without) {
  const Json& given = value(name);
  if (given.is_null()) return without;
  if (!given.is_boolean()) refuse(name, given, "true or false");
  return given.get<bool>();
}

std::int64_t ApiFields::whole(const std::string& name, std::int64_t without, const Range& range) {
  return maybe_whole(name, range).value_or(without);
}

std::optional<std::int64_t> ApiFields::maybe_whole(const std::string& name, const Range& range) {
  const Json& given = value(name);
  if (given.is_null()) return std::nullopt;
  const bool fits = given.is_number_unsigned() ? given.get<std::uint64_t>() <=
                                                     static_cast<std::uint64_t>(std::max<std::int64_t>(0, range.most))
                                               : given.is_number_integer() && given.get<std::int64_t>() <= range.most;
  if (!fits || given.get<std::int64_t>() < range.least) {
    refuse(name, given, "a whole number, " + std::to_string(range.least) + " to " + std::to_string(range.most));
  }
  return given.get<std::int64_t>();
}

double ApiFields::number(const std::string& name, double without) {
  const Json& given = value(name);
  if (given.is_null()) return without;
  if (!given.is_number() || !std::isfinite(given.get<double>())) refuse(name, given, "a number");
  return given.get<double>();
}

std::vector<std::int32_t> ApiFields::ids_of(const Json& list, const std::string& name) {
  if (!list.is_array()) refuse(name, list, "a list of ids");
  std::vector<std::int32_t> ids;
  ids.reserve(list.size());
  for (const Json& id : list) {
    const bool fits = id.is_number_unsigned() && id.get<std::uint64_t>() <= std::numeric_limits<std::int32_t>::max();
    if (!fits) refuse(name + "[" + std::to_string(ids.size()) + "]", id, "an id, 0 or more");
    ids.push_back(id.get<std::int32_t>());
  }
  return ids;
}

std::optional<std::vector<std::int32_t>> ApiFields::ids(const std::string& name) {
  const Json& given = value(name);
  if (given.is_null()) return std::nullopt;
  return ids_of(given, name);
}

std::vector<std::string> ApiFields::texts(const std::string& name, std::size_t most) {
  const Json& given = value(name);
  if (given.is_null()) return {};
  if (given.is_string()) return {given.get<std::string>()};
  const bool fits = given.is_array() && given.size() <= most &&
                    std::all_of(given.begin(), given.end(), [](const Json& each) { return each.is_string(); });
  if (!fits) refuse(name, given, "a text or a list of at most " + std::to_string(most));
  return given.get<std::vector<std::string>>();
}

void ApiFields::ignore(const std::string& name, const std::vector<Json>& harmless) {
  const Json& given = value(name);
  if (given.is_null() || std::find(harmless.begin(), harmless.end(), given) != harmless.end()) return;
  std::string all;
  for (const Json& each : harmless) all += (all.empty() ? "" : " or ") + json_text(each);
  refuse(name, given, all + ": this server has no such thing; leave it out");
}

void ApiFields::refuse_others() const {
  for (const auto& [name, given] : object_.items()) {
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    const std::string guess = did_you_mean(name, known_);
    throw ApiError(
        400, "there is no field '" + name + "'" + (guess.empty() ? "; docs/server.md lists them" : "; " + guess), name);
  }
}

}  // namespace routing
