// What the fuzzer calls: a function over any bytes, and bytes to begin with.
//
// A target feeds a reader. The reader may refuse what it gets, with an error of ours that says something; all else that
// it may not do (end the process, throw something of another library, give what contradicts itself) is a finding. Each
// target also holds what its reader promises: what was written and read again is the same, pieces give what the whole
// gives.
#pragma once

#include "routing/core/error.h"
#include "routing/core/hash.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace routing::fuzz {

using Bytes = std::span<const std::uint8_t>;

struct FuzzTarget {
  const char* name;
  void (*run)(Bytes bytes);
  // Whole valid inputs and some that are nearly so.
  std::vector<std::string> (*seeds)();
  // Of the fuzzer's inputs; so many bytes say all that the format can say.
  std::size_t longest = 8192;
};

// As tests are named.
inline void PrintTo(const FuzzTarget& target, std::ostream* out) {
  *out << target.name;
}

// A reader did what it may not.
class Finding : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

inline void hold(bool condition, const std::string& what) {
  if (!condition) throw Finding(what);
}

// Whether a reader took it. Its refusals are errors of the library, and say something.
template <class Refusal = Error, class Action>
bool takes(const Action& action) {
  try {
    action();
    return true;
  } catch (const Refusal& refusal) {
    hold(!std::string_view(refusal.what()).empty(), "a refusal says nothing");
    return false;
  }
}

// For what takes many times longer than the reader itself: the fuzzer checks one input in so many, chosen by its bytes,
// so that the same input is always treated alike. The replay checks all of them.
inline bool every_input_counts = false;
inline bool one_in(std::uint64_t count, Bytes bytes) {
  return every_input_counts || xxhash64(std::as_bytes(bytes)) % count == 0;
}

// A literal with the zeros in it.
template <std::size_t size>
std::string literal(const char (&text)[size]) {
  return {text, size - 1};
}

inline std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline Bytes bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}
inline std::span<const std::byte> raw(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
inline std::span<const std::byte> raw(Bytes bytes) {
  return std::as_bytes(bytes);
}

// Cuts an input into choices and texts: small numbers come from its end, so that what is left begins as a file does.
class InputCutter {
 public:
  explicit InputCutter(Bytes bytes) : left_(bytes) {}
  std::uint8_t byte() {
    if (left_.empty()) return 0;
    const std::uint8_t value = left_.back();
    left_ = left_.first(left_.size() - 1);
    return value;
  }
  std::size_t below(std::size_t bound) { return (byte() | std::size_t{byte()} << 8U) % bound; }
  bool empty() const { return left_.empty(); }
  std::string text(std::size_t size) {
    const Bytes taken = left_.first(std::min(size, left_.size()));
    left_ = left_.subspan(taken.size());
    return std::string(text_of(taken));
  }
  std::string rest() { return text(left_.size()); }

 private:
  Bytes left_;
};

}  // namespace routing::fuzz
