#include "lab/tables/table_terms.h"

#include "lab/measure/statistics.h"
#include "lab/measure/step_timer.h"
#include "routing/core/error.h"
#include "routing/data/prepared.h"
#include "routing/training/run_lock.h"
#include "routing/training/training_data.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <set>
#include <string_view>
#include <thread>

namespace routing {
namespace {

constexpr int kTimedSteps = 3;
constexpr std::int64_t kFewestSteps = 10;
constexpr std::chrono::milliseconds kWait{100};

bool stop_requested(const TableOptions& options) {
  const auto& asked = options.observer.training.stop_requested;
  return asked && asked();
}

bool is_set(const std::vector<std::string>& settings, std::string_view key) {
  return std::any_of(settings.begin(), settings.end(), [&](const std::string& setting) {
    return std::string_view(setting).substr(0, setting.find('=')) == key;
  });
}

// What the table itself gives every row.
void refuse_own_keys(const TableOptions& options) {
  struct OwnKey {
    std::string_view key, instead;
  };
  for (const OwnKey& own : std::array<OwnKey, 4>{{{"train.steps", "`steps`"},
                                                  {"train.minutes", "`minutes`"},
                                                  {"train.seed", "`seeds`"},
                                                  {"data.path", "`data`"}}}) {
    require<ConfigError>(!is_set(options.settings, own.key), "`settings` ", own.key,
                         ": a table decides this for all its rows; use ", own.instead);
  }
}

TableTerms wanted_terms(const TableSpec& spec, const TableOptions& options) {
  return {.table = spec.name,
          .scale = options.scale.value_or(TableScale::tiny),
          .steps = options.steps,
          .settings = options.settings};
}

void require_agreement(const TableTerms& decided, const TableSpec& spec, const TableOptions& options) {
  const std::string folder = options.folder.string();
  require<ConfigError>(decided.table == spec.name, folder, ": holds the table ", decided.table, ", not ", spec.name,
                       "; choose another `folder`");
  require<ConfigError>(!options.scale || *options.scale == decided.scale, folder, ": was begun at ",
                       to_string(decided.scale), " scale, not ", to_string(*options.scale),
                       "; choose another `folder`");
  require<ConfigError>(options.steps == 0 || options.steps == decided.steps, folder, ": its rows have ",
                       steps_text(decided), ", not ", options.steps, "; leave out `steps`, or choose another `folder`");
  require<ConfigError>(options.settings == decided.settings, folder, ": was begun as ", terms_text(decided),
                       "; give the same `settings` again, or choose another `folder`");
}

// Median seconds of a step of the row.
double row_seconds(const ExperimentConfig& config) {
  const std::unique_ptr<TrainingData> data = open_training_data(config);
  StepTimer timer(config, data.get());
  std::vector<double> seconds(kTimedSteps);
  for (double& value : seconds) value = timer.seconds_of_a_step();
  return quantile(seconds, 0.5);
}

// Every part has its minutes: steps x seconds of all runs = minutes x parts.
std::optional<std::int64_t> steps_for_minutes(const TableSpec& spec, const TableOptions& options,
                                              const TableTerms& terms, const std::vector<std::size_t>& rows) {
  double seconds = 0.0;
  for (const std::size_t row : rows) {
    if (stop_requested(options)) return std::nullopt;
    if (options.observer.notes) options.observer.notes("timing a few steps of " + spec.rows[row].id);
    seconds += row_seconds(planned_config(spec.rows[row], options, terms, options.seeds.front()));
  }
  seconds *= static_cast<double>(options.seeds.size());
  const double allowed = options.minutes * 60.0 * static_cast<double>(options.part.count);
  return std::max(kFewestSteps, static_cast<std::int64_t>(allowed / seconds) / 10 * 10);
}

// Those of the presets, if all rows of the table agree, whichever were asked for; otherwise each row keeps its own.
std::int64_t steps_of_presets(const TableSpec& spec, const RowChoice& choice) {
  std::set<std::int64_t> steps;
  for (const TableRow& row : spec.rows) {
    if (!row.is_literature) steps.insert(row_config(row, choice).train.steps);
  }
  return steps.size() == 1 ? *steps.begin() : TableTerms::kOwnSteps;
}

// Nothing if it was asked to stop meanwhile.
std::optional<std::int64_t> decided_steps(const TableSpec& spec, const TableOptions& options, const TableTerms& terms,
                                          const std::vector<std::size_t>& rows) {
  if (options.steps > 0) return options.steps;
  if (options.minutes > 0.0) {
    require<ConfigError>(spec.kind == TableKind::trained, "`minutes`: ", spec.name,
                         " times steps and does not train; say how many with `steps`");
    TableTerms few = terms;
    few.steps = kFewestSteps;
    return steps_for_minutes(spec, options, few, rows);
  }
  const auto& own = terms.scale == TableScale::tiny ? spec.tiny_steps : spec.paper_steps;
  if (own) return *own;
  return steps_of_presets(spec, {.scale = terms.scale, .selection = options.selection});
}

// Another process may be deciding: it does not take long, but for timing.
std::unique_ptr<RunLock> wait_for_lock(const TableOptions& options) {
  std::filesystem::create_directories(options.folder);
  bool said = false;
  while (true) {
    try {
      return std::make_unique<RunLock>(options.folder);
    } catch (const BusyError&) {
      // Looked at again below.
    }
    if (stop_requested(options)) return nullptr;
    if (!said && options.observer.notes) options.observer.notes("another process is deciding the number of steps");
    said = true;
    std::this_thread::sleep_for(kWait);
  }
}

}  // namespace

std::optional<TableTerms> agreed_terms(const TableSpec& spec, const TableOptions& options,
                                       const std::vector<std::size_t>& rows) {
  refuse_own_keys(options);
  const TableFolder folder(options.folder);
  if (auto decided = folder.read_terms()) {
    require_agreement(*decided, spec, options);
    return decided;
  }
  const auto lock = wait_for_lock(options);
  if (!lock) return std::nullopt;
  if (auto decided = folder.read_terms()) {
    require_agreement(*decided, spec, options);
    return decided;
  }
  TableTerms terms = wanted_terms(spec, options);
  const std::optional<std::int64_t> steps = decided_steps(spec, options, terms, rows);
  if (!steps) return std::nullopt;
  terms.steps = *steps;
  // Wrong settings should show before anything is written.
  for (const std::size_t row : rows) planned_config(spec.rows[row], options, terms, options.seeds.front());
  folder.write_terms(terms);
  return terms;
}

ExperimentConfig planned_config(const TableRow& row, const TableOptions& options, const TableTerms& terms,
                                std::uint64_t seed) {
  ExperimentConfig config = row_config(row, {.scale = terms.scale,
                                             .selection = options.selection,
                                             .environment = options.environment,
                                             .settings = terms.settings});
  config.train.seed = seed;
  if (terms.steps != TableTerms::kOwnSteps) config.train.steps = terms.steps;
  if (!options.data.empty()) config.data.path = tidy_path(options.data).string();
  if (!is_set(terms.settings, "train.warmup_steps")) {
    config.train.warmup_steps = std::min(config.train.warmup_steps, std::max<std::int64_t>(1, config.train.steps / 5));
  }
  return config;
}

}  // namespace routing
