#include "lab/runs/run_summary.h"

#include "lab/runs/model_header.h"
#include "routing/config/text/path_list.h"
#include "routing/core/error.h"
#include "routing/training/run_directory.h"
#include "routing/training/run_lock.h"

#include <algorithm>
#include <sys/stat.h>
#include <system_error>

namespace routing {
namespace {

namespace fs = std::filesystem;

bool looks_like_a_run(const fs::path& folder) {
  const RunDirectory run(folder);
  std::error_code ignored;
  return run.exists() || fs::exists(run.metrics_file(), ignored) || fs::exists(run.checkpoints_folder(), ignored);
}

void add_runs_below(const fs::path& folder, std::vector<fs::path>& found) {
  if (looks_like_a_run(folder)) {
    found.push_back(folder);
    return;
  }
  std::error_code error;
  std::vector<fs::path> inside;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    const bool hidden = entry->path().filename().string().front() == '.';
    if (!hidden && entry->is_directory(ignored) && !entry->is_symlink(ignored)) inside.push_back(entry->path());
  }
  if (error) found.push_back(folder);
  std::sort(inside.begin(), inside.end());
  for (const fs::path& each : inside) add_runs_below(each, found);
}

// 0 if it is not there.
std::int64_t time_of(const fs::path& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 ? static_cast<std::int64_t>(facts.st_mtime) : 0;
}

std::string data_name(const DataConfig& data) {
  if (data.path.empty()) return data.format == DataFormat::automatic ? "" : std::string(to_string(data.format));
  const std::vector<std::string> all = paths_in(data.path);
  const fs::path path(all.front());
  const std::string first = (path.has_filename() ? path : path.parent_path()).filename().string();
  return all.size() == 1 ? first : first + " +" + std::to_string(all.size() - 1);
}

void read_model(const RunDirectory& run, RunSummary& summary) {
  try {
    const ModelHeader model =
        read_model_header(run.is_export() ? run.folder() / "model.safetensors" : run.find_checkpoint("best").model());
    summary.parameters = model.parameters;
    summary.audit = model.text("audit");
  } catch (const FileError&) {
    // None yet, or damaged: what the log says stays true.
  }
}

RunState state_of(const RunDirectory& run, const ExperimentConfig& config, const RunHistory& history) {
  if (run.is_export()) return RunState::exported;
  if (is_locked(run.folder())) return RunState::running;
  if (history.diverged) return RunState::diverged;
  const double minutes = config.train.minutes;
  const bool out_of_time = minutes > 0.0 && history.seconds >= 60.0 * minutes;
  return history.step >= config.train.steps || out_of_time ? RunState::finished : RunState::stopped;
}

void read_run(const RunDirectory& run, const std::function<RunHistory()>& history, RunSummary& summary) {
  std::error_code error;
  fs::directory_iterator(run.folder(), error);
  require<FileError>(!error, "cannot be listed: ", error.message());
  require<FileError>(run.exists(), "is no whole run: config.toml is missing");
  const ExperimentConfig config = run.read_config();
  if (time_of(run.metrics_file()) > 0) summary.history = history();
  if (summary.history.validity.empty()) summary.history.validity = validity_label(config);
  summary.history.training.clear();
  summary.history.evaluation.clear();
  summary.name = config.name;
  summary.data = data_name(config.data);
  summary.steps = config.train.steps;
  // What was saved may be ahead of the last line of the log.
  if (const auto newest = run.newest_checkpoint()) {
    summary.history.step = std::max(summary.history.step, newest->step);
  }
  summary.state = state_of(run, config, summary.history);
  read_model(run, summary);
}

}  // namespace

std::vector<fs::path> find_runs(const fs::path& folder) {
  std::error_code ignored;
  require<FileError>(fs::is_directory(folder, ignored), folder.string(),
                     ": is not a folder; give one below which there are runs");
  std::vector<fs::path> found;
  add_runs_below(folder, found);
  return found;
}

RunSummary summarize_run(const fs::path& folder) {
  return summarize_run(folder, [&] { return read_run_history(RunDirectory(folder).metrics_file()); });
}

RunSummary summarize_run(const fs::path& folder, const std::function<RunHistory()>& history) {
  const RunDirectory run(folder);
  RunSummary summary{.folder = folder};
  summary.changed = time_of(run.metrics_file());
  for (const fs::path& other : {run.config_file(), folder}) {
    if (summary.changed == 0) summary.changed = time_of(other);
  }
  try {
    read_run(run, history, summary);
  } catch (const std::exception& error) {
    summary = {.folder = folder, .problem = error.what(), .changed = summary.changed};
  }
  return summary;
}

}  // namespace routing
