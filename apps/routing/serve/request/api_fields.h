// The fields of a request's body, each read once by its name and type. What nobody asked for is refused by name.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace routing {

class ApiFields {
 public:
  // Throws an ApiError (400) for what is no JSON object, for keys that stand twice, and for nesting beyond reason.
  explicit ApiFields(std::string_view body);

  // Absent and null mean the default. Throw an ApiError that names the field, its value and what it may be.
  std::string text(const std::string& name, const std::string& without);
  bool flag(const std::string& name, bool without);
  struct Range {
    std::int64_t least = 0;
    std::int64_t most = std::numeric_limits<std::int64_t>::max();
  };
  std::int64_t whole(const std::string& name, std::int64_t without, const Range& range);
  std::optional<std::int64_t> maybe_whole(const std::string& name, const Range& range);
  double number(const std::string& name, double without);
  std::optional<std::vector<std::int32_t>> ids(const std::string& name);
  // One text or a list of at most `most`.
  std::vector<std::string> texts(const std::string& name, std::size_t most);
  bool has(const std::string& name) const;
  // All of it, for readers of their own.
  const nlohmann::ordered_json& object() const { return object_; }
  // The value itself; null if absent.
  const nlohmann::ordered_json& value(const std::string& name);

  // Fields of other servers that mean nothing here: only a value that means nothing is taken.
  void ignore(const std::string& name, const std::vector<nlohmann::ordered_json>& harmless);
  // A field whose value does not matter.
  void ignore(const std::string& name) { value(name); }

  // After all fields were read: throws an ApiError for one that was not, and names the nearest that is known.
  void refuse_others() const;

  // A list of ids, as ids() reads it. Throws an ApiError that names `name`.
  static std::vector<std::int32_t> ids_of(const nlohmann::ordered_json& list, const std::string& name);

 private:
  nlohmann::ordered_json object_;
  std::vector<std::string> known_;
};

}  // namespace routing
