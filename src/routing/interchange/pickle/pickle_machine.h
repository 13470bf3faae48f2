// Runs the opcodes of a pickle and builds its values. Nothing is called: what would be a call becomes a value or an
// error.
#pragma once

#include "routing/interchange/pickle/pickle_values.h"
#include "routing/interchange/values/byte_cursor.h"

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace routing {

class PickleMachine {
 public:
  PickleMachine(std::span<const std::byte> pickle, const std::string& where) : cursor_(pickle, where) {}

  // The value of the whole pickle. Throws a FileError for everything that is not understood.
  PickleId run();
  const PickleValue& value(PickleId id) const { return values_[id]; }

 private:
  void step(std::uint8_t opcode);
  void push(PickleValue value);
  void push_integer(std::int64_t number);
  void push_id(PickleId id);
  void push_tuple(std::size_t count);
  void push_function();
  void push_text(std::uint64_t bytes);
  void push_long();
  PickleId pop();
  std::vector<PickleId> pop_to_mark();
  void remember(std::uint64_t place);
  void recall(std::uint64_t place);
  void extend_list(const std::vector<PickleId>& items);
  void extend_dictionary(const std::vector<PickleId>& keys_and_values);
  void refer_to_storage();
  void call();
  void set_state();
  PickleValue& top(PickleKind kind, const char* for_what);
  [[noreturn]] void refuse(const std::string& what) const;

  ByteCursor cursor_;
  std::vector<PickleValue> values_;
  std::vector<PickleId> stack_;
  std::vector<std::size_t> marks_;
  std::map<std::uint64_t, PickleId> memo_;
};

}  // namespace routing
