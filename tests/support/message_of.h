// What an error says.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace routing {

// What the action's exception of this kind says; a failure if it throws none.
template <class Kind, class Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const Kind& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace routing
