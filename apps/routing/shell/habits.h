// Answers to options that people type from habit and that this command does not have.
#pragma once

#include <functional>
#include <string>

namespace routing {

struct HabitAnswer {
  std::string message;  // empty: nobody's habit
  std::string hint = {};
};

// Of "--lr": the short option for it if the command has one, otherwise the configuration key and how to set it; of what
// there is not at all, such as a GPU, why. `has` says whether the command has an option.
HabitAnswer answer_to_habit(const std::string& option, const std::function<bool(const std::string&)>& has);

}  // namespace routing
