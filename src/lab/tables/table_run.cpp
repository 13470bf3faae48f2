#include "lab/tables/table_run.h"

#include "lab/tables/row_likelihood.h"
#include "lab/tables/table_terms.h"
#include "lab/tables/table_timing.h"
#include "routing/config/text/number_text.h"
#include "routing/core/clock.h"
#include "routing/core/error.h"
#include "routing/training/log/metrics_log.h"
#include "routing/training/run_lock.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

namespace routing {
namespace {

namespace fs = std::filesystem;

// Thrown out of an evaluation that is to stop; the next call does it again.
struct StopEvaluation {};

bool is_locked(const fs::path& folder) {
  if (!fs::exists(folder / "lock")) return false;
  try {
    const RunLock lock(folder);
    return false;
  } catch (const BusyError&) {
    return true;
  }
}

enum class RowEnd { done, failed, busy, had_result, interrupted };

class TableRunner {
 public:
  TableRunner(const TableSpec& spec, const TableOptions& options, TableTerms terms)
      : spec_(spec), options_(options), terms_(std::move(terms)), folder_(options.folder) {}

  RowEnd run(const PlannedRun& planned) {
    const TableRow& row = spec_.rows[planned.row];
    const std::string identity = row_identity(row, options_.selection);
    if (folder_.has_result(identity, planned.seed)) return RowEnd::had_result;
    const fs::path run = folder_.run(identity, planned.seed);
    if (is_locked(run)) return RowEnd::busy;
    const ExperimentConfig config = planned_config(row, options_, terms_, planned.seed);
    std::optional<Trainer> trainer;
    RowResult result{.terms = terms_,
                     .row = identity,
                     .seed = planned.seed,
                     .metric = spec_.metric.key,
                     .version = options_.version,
                     .host = options_.host};
    try {
      trainer.emplace(Trainer::Setup{.config = config,
                                     .run = run,
                                     .resume = true,
                                     .version = options_.version,
                                     .observer = options_.observer.training,
                                     .notes = options_.observer.notes});
    } catch (const BusyError&) {
      return RowEnd::busy;
    }
    // Another process may have ended it between the look and the lock.
    if (folder_.has_result(identity, planned.seed)) return RowEnd::had_result;
    result.validity = validity_label(trainer->config());
    result.data_label = trainer->data().label;
    result.data_hash = trainer->data().hash;
    return finish(*trainer, run, std::move(result));
  }

 private:
  RowEnd finish(Trainer& trainer, const fs::path& run, RowResult result) {
    try {
      if (trainer.run().end == TrainingEnd::interrupted) return RowEnd::interrupted;
      result.numbers = evaluate(trainer.config(), run);
      const std::optional<double> value = result.value();
      require<NotFiniteError>(value && std::isfinite(*value), "the evaluation gave no finite ", spec_.metric.key);
    } catch (const StopEvaluation&) {
      return RowEnd::interrupted;
    } catch (const NotFiniteError& error) {
      result.failure = error.what();
    }
    result.train_tokens = trainer.state().tokens;
    result.seconds = trainer.state().seconds;
    result.steps_per_second = logged_steps_per_second(run, trainer.config().train, trainer.state());
    result.date = utc_now();
    folder_.write_result(result);
    return result.failure.empty() ? RowEnd::done : RowEnd::failed;
  }

  RowNumbers evaluate(const ExperimentConfig& config, const fs::path& run) const {
    const RowEvaluation& evaluation = spec_.evaluate ? spec_.evaluate : row_likelihood;
    return evaluation({.model = RunDirectory(run).find_checkpoint("last").model(),
                       .config = config,
                       .test_tokens = spec_.test_tokens(terms_.scale),
                       .progress = [this](std::int64_t done, std::int64_t all) {
                         const auto& stop = options_.observer.training.stop_requested;
                         if (stop && stop()) throw StopEvaluation();
                         if (options_.observer.evaluation) options_.observer.evaluation(done, all);
                       }});
  }

  // Of the last part of the run that took steps, evaluation and saving left out.
  static double logged_steps_per_second(const fs::path& run, const TrainConfig& train, const TrainerState& state) {
    double tokens_per_second = 0.0;
    for (const auto& line : read_metrics(RunDirectory(run).metrics_file())) {
      const auto found = line.find("tokens_per_second");
      if (found != line.end() && found->is_number()) tokens_per_second = found->get<double>();
    }
    if (state.tokens == 0 || train.steps == 0) return 0.0;
    return tokens_per_second * static_cast<double>(state.step) / static_cast<double>(state.tokens);
  }

  const TableSpec& spec_;
  const TableOptions& options_;
  TableTerms terms_;
  TableFolder folder_;
};

void require_data(const TableSpec& spec, const TableOptions& options) {
  require<ConfigError>(spec.data.empty() || !options.data.empty(), spec.name, ": no data to train on; name ", spec.data,
                       " with `data`");
}

// One line per run, before and after it.
void say(const TableOptions& options, const std::string& text) {
  if (options.observer.notes) options.observer.notes(text);
}

}  // namespace

TablePart parse_table_part(const std::string& text) {
  const std::size_t slash = text.find('/');
  const auto index = number_in<std::int64_t>(std::string_view(text).substr(0, slash));
  const auto count =
      slash == std::string::npos ? std::nullopt : number_in<std::int64_t>(std::string_view(text).substr(slash + 1));
  require<ConfigError>(index && count && *index >= 1 && *index <= *count, "`part` ", text,
                       ": write I/N with 1 <= I <= N, such as 1/2 and 2/2 for two processes");
  return {*index, *count};
}

std::vector<std::uint64_t> parse_seeds(const std::string& text) {
  std::vector<std::uint64_t> seeds;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const auto seed = number_in<std::int64_t>(word);
    require<ConfigError>(seed && *seed >= 0, "`seeds` ", text, ": '", word,
                         "' is not a seed; write whole numbers with commas between them, such as 1,2,3");
    const auto value = static_cast<std::uint64_t>(*seed);
    require<ConfigError>(std::find(seeds.begin(), seeds.end(), value) == seeds.end(), "`seeds` ", text, ": ", word,
                         " is there twice; a second run would be the same");
    seeds.push_back(value);
  }
  require<ConfigError>(!seeds.empty(), "`seeds`: names no seed; write whole numbers, such as 1,2,3");
  return seeds;
}

std::vector<PlannedRun> planned_runs(const std::vector<std::size_t>& rows, const std::vector<std::uint64_t>& seeds,
                                     const TablePart& part) {
  std::vector<PlannedRun> runs;
  std::int64_t number = 0;
  for (const std::uint64_t seed : seeds) {
    for (const std::size_t row : rows) {
      if (number++ % part.count == part.index - 1) runs.push_back({row, seed});
    }
  }
  return runs;
}

TableOutcome run_table(const TableSpec& spec, const TableOptions& options) {
  require_data(spec, options);
  const TableFolder folder(options.folder);
  const std::vector<std::size_t> rows =
      select_rows(spec, options.rows, ranked_routed_rows(spec, folder.read_results(spec.name), options.selection));
  const std::optional<TableTerms> terms = agreed_terms(spec, options, rows);
  if (!terms) return {.end = TableEnd::interrupted};
  if (spec.kind == TableKind::timed) return time_table(spec, options, *terms);
  const std::vector<PlannedRun> runs = planned_runs(rows, options.seeds, options.part);
  TableOutcome outcome{.runs = static_cast<std::int64_t>(runs.size())};
  say(options, terms_text(*terms) + ", " + std::to_string(runs.size()) + " runs" +
                   (options.part.count > 1 ? " in this part" : ""));
  TableRunner runner(spec, options, *terms);
  std::int64_t number = 0;
  for (const PlannedRun& run : runs) {
    const std::string name = row_identity(spec.rows[run.row], options.selection) + " seed " + std::to_string(run.seed);
    const std::string place = "run " + std::to_string(++number) + " of " + std::to_string(runs.size()) + ", " + name;
    const auto& stop = options.observer.training.stop_requested;
    if (stop && stop()) {
      outcome.end = TableEnd::interrupted;
      break;
    }
    say(options, place);
    switch (runner.run(run)) {
      case RowEnd::done:
        ++outcome.done;
        break;
      case RowEnd::failed:
        ++outcome.failed;
        say(options, name + " diverged; its result says why");
        break;
      case RowEnd::busy:
        ++outcome.busy;
        say(options, name + " is left out: another process is at it");
        break;
      case RowEnd::had_result:
        ++outcome.before;
        say(options, name + " was done before");
        break;
      case RowEnd::interrupted:
        outcome.end = TableEnd::interrupted;
        return outcome;
    }
  }
  return outcome;
}

}  // namespace routing
