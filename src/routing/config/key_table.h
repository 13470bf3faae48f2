// Fields of a structure as named keys with text values: one line per key gives its reading, writing, kind and
// description.
//
//   std::vector<ConfigKey<Experiment>> keys;
//   KeySection train(keys, "train.", &Experiment::train);
//   train.add("steps", &Train::steps, "optimiser steps");
#pragma once

#include "routing/config/text/number_text.h"
#include "routing/config/words.h"
#include "routing/core/error.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace routing {

// What a value is in a TOML file.
enum class ValueKind {
  integer,
  real,
  truth,
  text,
  path,   // text; relative to the folder of the file it stands in
  paths,  // one such, or a list of them: path_list.h
  scale,  // a positive number, or the formula kInverseRoot as text
};

inline constexpr const char* kInverseRoot = "1/sqrt(head_dim)";

template <class Config>
struct ConfigKey {
  std::string name;
  ValueKind kind = ValueKind::text;
  std::string description;
  std::function<std::string(const Config&)> get;
  std::function<void(Config&, const std::string&)> set;  // a wrong value is a ConfigError that begins with the name
};

// Its own namespace, because the names are short and this header is widely included.
namespace key_text {

template <class Number>
requires std::is_arithmetic_v<Number> std::string text_of(Number value) {
  if constexpr (std::is_same_v<Number, bool>) {
    return value ? "true" : "false";
  } else {
    return number_text(value);
  }
}
inline std::string text_of(const std::string& value) {
  return value;
}
inline std::string text_of(const std::optional<double>& value) {
  return value ? text_of(*value) : kInverseRoot;
}
template <HasWords Enum>
std::string text_of(Enum value) {
  return std::string(to_string(value));
}

// All of the text as a value; `key` begins the error.
template <class Value>
Value value_of(const std::string& key, const std::string& text) {
  if constexpr (std::is_same_v<Value, std::string>) {
    return text;
  } else if constexpr (HasWords<Value>) {
    return parse_word<Value>(text, key);
  } else if constexpr (std::is_same_v<Value, std::optional<double>>) {
    return text == kInverseRoot ? std::nullopt : std::optional(value_of<double>(key, text));
  } else if constexpr (std::is_same_v<Value, bool>) {
    require<ConfigError>(text == "true" || text == "false", key, ": '", text, "' is neither true nor false");
    return text == "true";
  } else if constexpr (std::is_same_v<Value, std::uint64_t>) {
    // TOML's whole numbers end at 2^63 - 1, and what cannot be written down cannot be repeated.
    const auto value = value_of<std::int64_t>(key, text);
    require<ConfigError>(value >= 0, key, ": '", text, "' is below 0");
    return static_cast<std::uint64_t>(value);
  } else {
    const std::optional<Value> value = number_in<Value>(text);
    require<ConfigError>(value.has_value(), key, ": '", text,
                         std::is_integral_v<Value> ? "' is not a whole number" : "' is not a number");
    return *value;
  }
}

template <class Value>
constexpr ValueKind kind_of() {
  if constexpr (std::is_same_v<Value, bool>) return ValueKind::truth;
  if constexpr (std::is_integral_v<Value>) return ValueKind::integer;
  if constexpr (std::is_floating_point_v<Value>) return ValueKind::real;
  if constexpr (std::is_same_v<Value, std::optional<double>>) return ValueKind::scale;
  return ValueKind::text;
}

}  // namespace key_text

// Appends the keys of one part of a configuration. `Access` reaches the part and each `Field` its value: a pointer to a
// member, or a function that takes auto& and returns auto&.
template <class Config, class Access>
class KeySection {
 public:
  KeySection(std::vector<ConfigKey<Config>>& keys, std::string prefix, Access access)
      : keys_(keys), prefix_(std::move(prefix)), access_(access) {}

  // Text that is a path, or several.
  template <class Field>
  void add_path(ValueKind kind, const std::string& name, Field field, const std::string& description) {
    add(name, field, description);
    keys_.back().kind = kind;
  }

  template <class Field>
  void add(const std::string& name, Field field, const std::string& description) {
    add_checked(
        name, field, [](const std::string&, const std::string&) {}, description);
  }

  // `check` gets the key and the text, and throws if the text is wrong.
  template <class Field, class Check>
  void add_checked(const std::string& name, Field field, Check check, const std::string& description) {
    const auto reach = reach_of(field);
    using Value = std::remove_cvref_t<decltype(reach(std::declval<Config&>()))>;
    const std::string key = prefix_ + name;
    keys_.push_back({.name = key,
                     .kind = key_text::kind_of<Value>(),
                     .description = description,
                     .get = [reach](const Config& config) { return key_text::text_of(reach(config)); },
                     .set =
                         [reach, key, check](Config& config, const std::string& text) {
                           check(key, text);
                           reach(config) = key_text::value_of<Value>(key, text);
                         }});
  }

 private:
  template <class Field>
  auto reach_of(Field field) const {
    return [ access = access_, field ](auto& config) -> auto& {
      return std::invoke(field, std::invoke(access, config));
    };
  }

  std::vector<ConfigKey<Config>>& keys_;
  std::string prefix_;
  Access access_;
};

template <class Config>
const ConfigKey<Config>* find_key(const std::vector<ConfigKey<Config>>& keys, std::string_view name) {
  for (const ConfigKey<Config>& key : keys) {
    if (key.name == name) return &key;
  }
  return nullptr;
}

template <class Config>
std::vector<std::string> names_of(const std::vector<ConfigKey<Config>>& keys) {
  std::vector<std::string> names;
  names.reserve(keys.size());
  for (const ConfigKey<Config>& key : keys) names.push_back(key.name);
  return names;
}

}  // namespace routing
