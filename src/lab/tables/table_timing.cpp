#include "lab/tables/table_timing.h"

#include "lab/measure/statistics.h"
#include "lab/measure/step_timer.h"
#include "lab/measure/timing.h"
#include "lab/tables/table_terms.h"
#include "routing/core/clock.h"
#include "routing/core/error.h"

#include <memory>

namespace routing {
namespace {

struct TimedRow {
  const TableRow* row = nullptr;
  ExperimentConfig config = {};
  std::unique_ptr<StepTimer> timer = {};
  std::vector<double> seconds = {};  // a round
};

// Of the same rounds, so that slow ones count for both.
double median_ratio(const std::vector<double>& seconds, const std::vector<double>& baseline) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < seconds.size(); ++i) ratios.push_back(seconds[i] / baseline[i]);
  return quantile(ratios, 0.5);
}

RowNumbers numbers_of(const TimedRow& row, const TimedRow* baseline) {
  const bench::Timing timing = bench::summarise(row.seconds);
  RowNumbers numbers{{"seconds_per_step", timing.median},
                     {"lower_quartile", timing.lower_quartile},
                     {"upper_quartile", timing.upper_quartile},
                     {"steps_per_second", 1.0 / timing.median}};
  if (baseline != nullptr) numbers.emplace_back("slower_than_baseline", median_ratio(row.seconds, baseline->seconds));
  return numbers;
}

std::vector<TimedRow> rows_of(const TableSpec& spec, const TableOptions& options, const TableTerms& terms,
                              std::uint64_t seed) {
  std::vector<TimedRow> rows;
  for (const TableRow& row : spec.rows) {
    if (row.is_literature) continue;
    TimedRow timed{.row = &row, .config = planned_config(row, options, terms, seed)};
    if (options.observer.notes) options.observer.notes("making " + row.id + " and taking its first step");
    timed.timer = std::make_unique<StepTimer>(timed.config);
    rows.push_back(std::move(timed));
  }
  return rows;
}

// Whether all rounds were taken.
bool take_rounds(std::vector<TimedRow>& rows, const TableOptions& options, std::int64_t rounds) {
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (TimedRow& row : rows) {
      const auto& stop = options.observer.training.stop_requested;
      if (stop && stop()) return false;
      row.seconds.push_back(row.timer->seconds_of_a_step());
    }
    if (options.observer.evaluation) options.observer.evaluation(round + 1, rounds);
  }
  return true;
}

}  // namespace

TableOutcome time_table(const TableSpec& spec, const TableOptions& options, const TableTerms& terms) {
  require<ConfigError>(options.part.count == 1, "`part`: the rows of ", spec.name,
                       " are timed in turns, by one process; leave it out");
  const TableFolder folder(options.folder);
  TableOutcome outcome{.runs = static_cast<std::int64_t>(options.seeds.size())};
  for (const std::uint64_t seed : options.seeds) {
    bool all_there = true;
    for (const TableRow& row : spec.rows) {
      const std::string identity = row_identity(row, options.selection);
      all_there = all_there && (row.is_literature || folder.has_result(identity, seed));
    }
    if (all_there) {
      ++outcome.before;
      continue;
    }
    std::vector<TimedRow> rows = rows_of(spec, options, terms, seed);
    if (!take_rounds(rows, options, terms.steps)) {
      outcome.end = TableEnd::interrupted;
      return outcome;
    }
    const TimedRow* baseline = nullptr;
    for (const TimedRow& row : rows) baseline = row.row->id == spec.baseline ? &row : baseline;
    for (const TimedRow& row : rows) {
      RowResult result{.terms = terms,
                       .row = row_identity(*row.row, options.selection),
                       .seed = seed,
                       .numbers = numbers_of(row, baseline),
                       .metric = spec.metric.key};
      result.steps_per_second = *result.number("steps_per_second");
      const TrainConfig& train = row.config.train;
      result.train_tokens = terms.steps * train.batch_size * train.accumulation * train.sequence_length;
      for (const double seconds : row.seconds) result.seconds += seconds;
      result.validity = validity_label(row.config);
      result.date = utc_now();
      result.version = options.version;
      result.host = options.host;
      folder.write_result(result);
    }
    ++outcome.done;
  }
  return outcome;
}

}  // namespace routing
