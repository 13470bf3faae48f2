#include "lab/leak/leak_report.h"

#include "routing/core/error.h"

#include <algorithm>
#include <set>

namespace routing {
namespace {

using Number = double PrefixSample::*;
using Values = std::vector<double>;

// The runs of one selection.
class RunGroup {
 public:
  explicit RunGroup(std::string selection) : selection_(std::move(selection)) {}
  void add(const LeakRun& run) { runs_.push_back(&run); }

  const std::string& selection() const { return selection_; }
  const LeakRun& first() const { return *runs_.front(); }
  std::vector<std::uint64_t> seeds() const {
    std::vector<std::uint64_t> result;
    for (const LeakRun* run : runs_) result.push_back(run->seed);
    return result;
  }

  // A value per window: the mean over its positions in a part of the window, and over runs. Windows without a position
  // there are left out, the same ones for every number.
  Values by_window(Number number, std::int64_t first_quarter = 0, std::int64_t quarters = kQuarters) const {
    const std::int64_t length = first().likelihood.sequence_length;
    std::vector<SampleMoments> windows(first().likelihood.window_nats.size());
    for (const LeakRun* run : runs_) {
      for (const PrefixSample& sample : run->likelihood.samples) {
        const std::int64_t quarter = sample.place.position * static_cast<std::int64_t>(kQuarters) / length;
        if (quarter < first_quarter || quarter >= first_quarter + quarters) continue;
        windows[static_cast<std::size_t>(sample.place.window)].add(sample.*number);
      }
    }
    Values result;
    for (const SampleMoments& window : windows) {
      if (window.count() > 0) result.push_back(window.interval().mean);
    }
    return result;
  }
  Values every_token_by_window() const {
    Values result(first().likelihood.window_nats.size(), 0.0);
    for (const LeakRun* run : runs_) {
      for (std::size_t i = 0; i < result.size(); ++i) {
        result[i] += run->likelihood.window_nats[i] / static_cast<double>(runs_.size());
      }
    }
    return result;
  }
  // A value per run, by seed.
  Values every_token_by_seed() const {
    return by_seed([](const LeakRun& run) { return mean(run.likelihood.window_nats); });
  }
  Values difference_by_seed(Number number) const {
    return by_seed([&](const LeakRun& run) {
      Values differences;
      for (const PrefixSample& sample : run.likelihood.samples) {
        differences.push_back(sample.*number - sample.teacher_forced);
      }
      return mean(differences);
    });
  }
  Agreement agreement(Agreement PrefixLikelihood::*which) const {
    Agreement sum{.promised = true};
    for (const LeakRun* run : runs_) {
      const Agreement& own = run->likelihood.*which;
      sum.promised = sum.promised && own.promised;
      sum.measured += own.measured;
      sum.different += own.different;
    }
    return sum;
  }

 private:
  template <class Value>
  Values by_seed(const Value& value) const {
    std::vector<std::pair<std::uint64_t, double>> pairs;
    pairs.reserve(runs_.size());
    for (const LeakRun* run : runs_) pairs.emplace_back(run->seed, value(*run));
    std::sort(pairs.begin(), pairs.end());
    Values result;
    for (const auto& [seed, number] : pairs) result.push_back(number);
    return result;
  }

  std::string selection_;
  std::vector<const LeakRun*> runs_;
};

void require_comparable(std::span<const LeakRun> runs) {
  require<InputError>(!runs.empty(), "leak: there are no runs, but at least 1 is needed");
  const LeakRun& first = runs.front();
  require<InputError>(first.likelihood.window_nats.size() >= 2, "leak: ", first.likelihood.window_nats.size(),
                      " window was measured, but an interval over windows needs at least 2; raise `windows`");
  std::set<std::pair<std::string, std::uint64_t>> names;
  for (const LeakRun& run : runs) {
    require<InputError>(names.emplace(run.selection, run.seed).second, "leak: two runs are ", run.selection,
                        " of seed ", run.seed, "; leave one of them out");
    const auto same_place = [](const PrefixSample& one, const PrefixSample& other) { return one.place == other.place; };
    require<InputError>(run.likelihood.sequence_length == first.likelihood.sequence_length &&
                            std::equal(run.likelihood.samples.begin(), run.likelihood.samples.end(),
                                       first.likelihood.samples.begin(), first.likelihood.samples.end(), same_place),
                        "leak: ", run.selection, " of seed ", run.seed, " was measured at other places than ",
                        first.selection, " of seed ", first.seed, "; use the same windows, positions and seed of both");
    require<InputError>(run.validity == first.validity || run.selection != first.selection, "leak: ", run.selection,
                        " of seed ", run.seed, " is '", run.validity, "', but of seed ", first.seed, " '",
                        first.validity, "'");
  }
}

std::vector<RunGroup> by_selection(std::span<const LeakRun> runs) {
  std::vector<RunGroup> groups;
  for (const LeakRun& run : runs) {
    auto place = std::find_if(groups.begin(), groups.end(),
                              [&](const RunGroup& group) { return group.selection() == run.selection; });
    if (place == groups.end()) place = groups.insert(place, RunGroup(run.selection));
    place->add(run);
  }
  return groups;
}

std::optional<LeakNumbers> numbers(const RunGroup& group, std::int64_t first_quarter, std::int64_t quarters) {
  const Values teacher = group.by_window(&PrefixSample::teacher_forced, first_quarter, quarters);
  const Values replaced = group.by_window(&PrefixSample::future_replaced, first_quarter, quarters);
  const Values prefix = group.by_window(&PrefixSample::prefix_only, first_quarter, quarters);
  if (teacher.size() < 2) return std::nullopt;
  return LeakNumbers{.teacher_forced = mean_interval(teacher),
                     .future_replaced = mean_interval(replaced),
                     .prefix_only = mean_interval(prefix),
                     .leak = paired_difference(replaced, teacher),
                     .prefix_cost = paired_difference(prefix, teacher)};
}

std::optional<MeanInterval> over_seeds(const Values& values) {
  return values.size() >= 2 ? std::optional(mean_interval(values)) : std::nullopt;
}

SelectionLeak selection_leak(const RunGroup& group) {
  SelectionLeak result{.selection = group.selection(),
                       .validity = group.first().validity,
                       .seeds = group.seeds(),
                       .every_token = mean_interval(group.every_token_by_window()),
                       .all = numbers(group, 0, kQuarters).value(),
                       .future_replaced = group.agreement(&PrefixLikelihood::future_replaced),
                       .prefix_only = group.agreement(&PrefixLikelihood::prefix_only),
                       .every_token_over_seeds = over_seeds(group.every_token_by_seed()),
                       .leak_over_seeds = over_seeds(group.difference_by_seed(&PrefixSample::future_replaced)),
                       .prefix_cost_over_seeds = over_seeds(group.difference_by_seed(&PrefixSample::prefix_only))};
  for (std::size_t quarter = 0; quarter < kQuarters; ++quarter) {
    result.quarters[quarter] = numbers(group, static_cast<std::int64_t>(quarter), 1);
  }
  return result;
}

Values differences(const Values& first, const Values& second) {
  Values result(first.size());
  std::transform(first.begin(), first.end(), second.begin(), result.begin(), std::minus<>());
  return result;
}

LeakShare leak_share(const RunGroup& group, const RunGroup& reference) {
  const Values teacher = group.by_window(&PrefixSample::teacher_forced);
  const Values gains = differences(reference.every_token_by_window(), group.every_token_by_window());
  LeakShare result{
      .selection = group.selection(),
      .reference = reference.selection(),
      .gain = mean_interval(gains),
      .leak_share = ratio_interval(differences(group.by_window(&PrefixSample::future_replaced), teacher), gains),
      .prefix_share = ratio_interval(differences(group.by_window(&PrefixSample::prefix_only), teacher), gains)};
  std::vector<std::uint64_t> own = group.seeds();
  std::vector<std::uint64_t> other = reference.seeds();
  std::sort(own.begin(), own.end());
  std::sort(other.begin(), other.end());
  if (own == other) {
    result.gain_over_seeds = over_seeds(differences(reference.every_token_by_seed(), group.every_token_by_seed()));
  }
  return result;
}

}  // namespace

std::string selection_label(const ExperimentConfig& config) {
  if (config.attention.content_heads == 0) return "local";
  if (config.attention.content != PatternKind::routing) return std::string(to_string(config.attention.content));
  return std::string(to_string(config.routing.routing().selection));
}

LeakRun measure_leak(SequenceModel& model, TokenView tokens, const PrefixLikelihoodOptions& options) {
  const ExperimentConfig& config = model.config();
  return {.selection = selection_label(config),
          .seed = config.train.seed,
          .validity = validity_label(config),
          .likelihood = prefix_likelihood(model, tokens, options)};
}

LeakReport leak_report(std::span<const LeakRun> runs, TokenKind tokens) {
  require_comparable(runs);
  const PrefixLikelihood& first = runs.front().likelihood;
  LeakReport report{.sequence_length = first.sequence_length,
                    .windows = static_cast<std::int64_t>(first.window_nats.size()),
                    .samples = static_cast<std::int64_t>(first.samples.size()),
                    .tokens = tokens};
  const std::vector<RunGroup> groups = by_selection(runs);
  for (const RunGroup& group : groups) report.selections.push_back(selection_leak(group));
  for (std::size_t own = 0; own < groups.size(); ++own) {
    if (!report.selections[own].reads_future()) continue;
    for (std::size_t other = 0; other < groups.size(); ++other) {
      if (report.selections[other].reads_future()) continue;
      report.shares.push_back(leak_share(groups[own], groups[other]));
    }
  }
  return report;
}

}  // namespace routing
