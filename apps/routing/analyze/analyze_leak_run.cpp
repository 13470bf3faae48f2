#include "analyze/analyze_options.h"
#include "inputs/run_model.h"
#include "lab/figures/figure_canvas.h"
#include "lab/leak/leak_figure.h"
#include "lab/leak/leak_runs.h"
#include "lab/leak/leak_text.h"
#include "routing/config/text/path_list.h"
#include "routing/core/error.h"
#include "routing/core/files.h"
#include "routing/data/dataset.h"
#include "routing/data/prepared.h"
#include "routing/model/weights.h"
#include "shell/engine.h"
#include "train/training_display.h"

#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

namespace routing {
namespace {

namespace fs = std::filesystem;

bool is_table(const fs::path& path) {
  return path.extension() == ".md" || path.extension() == ".csv" || path.extension() == ".json";
}

DataConfig data_of(const LeakOptions& options, const fs::path& model) {
  const ExperimentConfig config = load_model_config(model);
  require<ConfigError>(!options.data.empty() || !config.data.path.empty(), model.string(),
                       ": names no data; give some with --data PATH");
  return run_data_config(model, config, {.path = options.data});
}

// A part of one training's data may be what another one learned.
void require_same_data(const std::vector<fs::path>& models) {
  const DataConfig first = load_model_config(models.front()).data;
  for (const fs::path& model : models) {
    const DataConfig own = load_model_config(model).data;
    require<ConfigError>(tidy_paths(own.path) == tidy_paths(first.path) && own.split == first.split, model.string(),
                         ": was trained on ", shown_paths(own.path), " cut ", own.split, ", but ",
                         models.front().string(), " on ", shown_paths(first.path), " cut ", first.split,
                         "; compare models that were trained on the same data");
  }
}

void write_result(const LeakReport& report, const LeakSource& source, const fs::path& path) {
  if (path.extension() == ".md") return write_file_at_once(path, leak_markdown(report, source));
  if (path.extension() == ".csv") return write_file_at_once(path, leak_csv(report));
  if (path.extension() == ".json") return write_file_at_once(path, leak_json(report, source) + "\n");
  write_leak_figure(report, path);
}

}  // namespace

int run_analyze_leak(const LeakOptions& options, const ProgramOptions& program) {
  // Wrong names first, before minutes of work.
  for (const std::string& path : options.paths) {
    if (!is_table(path)) figure_format(path);
  }
  LeakJob job{.part = options.split,
              .windows = options.windows,
              .positions = options.positions,
              .seed = options.seed,
              .checks = options.checks,
              .check_all = options.check_all};
  for (const std::string& name : options.runs) {
    job.models.push_back(model_file(name, options.checkpoint));
    require<ConfigError>(load_model_config(job.models.back()).model.encoder_layers == 0, name,
                         ": is an encoder-decoder, but the leak is measured of decoder-only models");
  }
  require_same_data(job.models);
  if (!options.precision.empty()) {
    job.precision = chosen_precision(options.precision, load_model_config(job.models.front()));
  }
  TrainingDisplay display(program.quiet);
  const DataConfig config = data_of(options, job.models.front());
  const Dataset data(
      config, {.train_needed = options.data.empty(), .notes = [&](const std::string& line) { display.say(line); }});
  job.progress = [&](const std::string& model, std::int64_t done, std::int64_t all) {
    display.progress(model + ": pass", done, all);
  };
  const std::vector<LeakRun> runs = measure_leak_of_models(job, data);
  display.finish();
  const LeakReport report = leak_report(runs, data.facts().tokens);
  const LeakSource source{.data = "the " + options.split + " part of " + data.path().string(),
                          .label = data.facts().label()};
  for (const std::string& path : options.paths) write_result(report, source, path);
  std::cout << (options.json ? leak_json(report, source) + "\n" : leak_markdown(report, source));
  for (const std::string& path : options.paths) {
    if (!options.json) std::cout << path << "\n";
  }
  return kDone;
}

}  // namespace routing
