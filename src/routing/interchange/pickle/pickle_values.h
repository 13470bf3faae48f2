// Python's values as the restricted reader of pickles keeps them. They refer to each other by number, so that nothing
// is copied, however often a pickle repeats it, and nothing is followed without being asked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace routing {

enum class PickleKind { none, boolean, integer, real, text, tuple, list, dictionary, function, storage, tensor };

using PickleId = std::uint32_t;

struct PickleValue {
  PickleKind kind = PickleKind::none;
  std::int64_t number = 0;           // of integers and booleans
  std::string text = {};             // of texts; "module name" of functions
  std::vector<PickleId> items = {};  // of tuples and lists; keys and values in turn of dictionaries; what a storage or
                                     // a tensor was made of
};

// "a dictionary", "the function os.system": for messages.
std::string described(const PickleValue& value);

}  // namespace routing
