// `routing eval --by-recurrence`: what targets cost by how far back the tokens before them last occurred, of one run or
// of two on the same windows.
#pragma once

#include "eval/eval_run.h"
#include "routing/evaluation/recurrence.h"

#include <nlohmann/json.hpp>

#include <vector>

namespace routing {

// What the options say, or what fits the tokens and the local heads of the run.
RecurrenceOptions recurrence_options(const EvalOptions& options, const EvalRun& run);

// A ConfigError that names the first thing in which the two runs would not be evaluated on the same windows.
void require_same_windows(const EvalOptions& options, const EvalRun& run, const EvalRun& other);

// What was found of a run, and of the one that it is compared with, if any.
struct RecurrenceResult {
  RecurrenceOptions options = {};
  std::vector<WindowRecurrence> windows = {};
  std::filesystem::path against = {};  // empty: alone
  std::string other_validity = {};
  std::vector<WindowRecurrence> other_windows = {};
};
void print_recurrence(const RecurrenceResult& result, const EvalRun& run);
// For "recurrence" of the JSON.
nlohmann::ordered_json recurrence_json(const RecurrenceResult& result, const EvalRun& run);

}  // namespace routing
