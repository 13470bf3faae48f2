// What the files of a run tell about it, for a table of runs. Knows no torch.
#pragma once

#include "lab/runs/run_history.h"
#include "routing/config/words.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace routing {

enum class RunState {
  running,   // a process holds its lock
  finished,  // all its steps, or its minutes
  stopped,
  diverged,  // see RunHistory::diverged; a run that ended by a loss that is no number may only look stopped
  exported,  // a model without its run
};
constexpr auto words_of(RunState) {
  using enum RunState;
  return std::to_array<Word<RunState>>({{running, "running"},
                                        {finished, "finished"},
                                        {stopped, "stopped"},
                                        {diverged, "diverged"},
                                        {exported, "exported"}});
}

struct RunSummary {
  std::filesystem::path folder = {};
  std::string problem = {};  // why the folder cannot be read as a run; the rest is then as here
  std::string name = {};     // of the experiment
  std::string data = {};     // the name of the file or folder, or what was made up; empty if not known
  RunState state = RunState::stopped;
  std::int64_t steps = 0;                       // asked for
  std::optional<std::int64_t> parameters = {};  // nothing before the first checkpoint
  std::string audit = {};                       // of the best checkpoint; empty if it was not audited
  std::int64_t changed = 0;                     // seconds since 1970
  RunHistory history = {};                      // without its points; labels also before the first line
};

// Folders below this one, itself included, that hold a run or what looks like one: a config.toml, a metrics.jsonl or
// checkpoints. By name; nothing is looked for inside a run, in hidden folders or behind links. Folders that may not be
// listed are among them: they may hold one.
//
// Throws a FileError if there is no such folder.
std::vector<std::filesystem::path> find_runs(const std::filesystem::path& folder);

// Never throws for what the files say: `problem` does.
RunSummary summarize_run(const std::filesystem::path& folder);
// The same for who knows the history already: `history` is asked only where there is a metrics.jsonl, and may throw
// what read_run_history() throws.
RunSummary summarize_run(const std::filesystem::path& folder, const std::function<RunHistory()>& history);

}  // namespace routing
