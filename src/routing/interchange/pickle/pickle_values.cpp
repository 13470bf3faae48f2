#include "routing/interchange/pickle/pickle_values.h"

namespace routing {

std::string described(const PickleValue& value) {
  switch (value.kind) {
    case PickleKind::none:
      return "None";
    case PickleKind::boolean:
      return value.number != 0 ? "True" : "False";
    case PickleKind::integer:
      return "the number " + std::to_string(value.number);
    case PickleKind::real:
      return "a fraction";
    case PickleKind::text:
      return "the text '" + value.text.substr(0, 60) + "'";
    case PickleKind::tuple:
      return "a tuple of " + std::to_string(value.items.size());
    case PickleKind::list:
      return "a list of " + std::to_string(value.items.size());
    case PickleKind::dictionary:
      return "a dictionary of " + std::to_string(value.items.size() / 2);
    case PickleKind::function:
      return "the function " + value.text;
    case PickleKind::storage:
      return "a storage";
    default:
      return "a tensor";
  }
}

}  // namespace routing
