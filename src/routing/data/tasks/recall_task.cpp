#include "routing/data/tasks/recall_task.h"

#include "routing/config/text/split_text.h"
#include "routing/core/error.h"
#include "routing/core/random.h"

#include <algorithm>
#include <cmath>

namespace routing {
namespace {

std::uint64_t number_of_part(std::string_view part) {
  const std::vector<std::string>& names = split_names();
  const auto found = std::find(names.begin(), names.end(), part);
  require<InputError>(found != names.end(), "recall: '", part, "' is not part of the data; name train, valid or test");
  return static_cast<std::uint64_t>(found - names.begin());
}

// See RecallLengths.
constexpr double kGrowthBegins = 0.4;
constexpr double kGrowthEnds = 0.8;

struct OpenFact {
  std::int64_t key = 0;
  std::int64_t value = 0;
  std::int64_t position = 0;  // of the key
};

// One sequence while it is written.
class Writer {
 public:
  Writer(const RecallTask& task, RandomStream stream, std::int64_t length)
      : task_(task), stream_(stream), length_(length) {
    const RecallOptions& options = task.options();
    const double rate =
        std::min(1.0, kKeysUsed * static_cast<double>(options.keys) / (kFactRate * static_cast<double>(length)));
    fact_rate_ = kFactRate * rate;
    ask_rate_ = kAskRate * rate;
    for (std::int64_t key = 0; key < options.keys; ++key) free_.push_back(key);
    word_ = below(options.filler);
    write(word_, std::log(static_cast<double>(options.filler)));
  }

  RecallSequence finish() {
    while (!full()) next();
    return std::move(result_);
  }

 private:
  bool full() const { return static_cast<std::int64_t>(result_.ids.size()) == length_; }
  std::int64_t below(std::int64_t bound) { return stream_.below(static_cast<std::uint32_t>(bound)); }

  void write(std::int64_t id, double nats) {
    if (full()) return;
    result_.ids.push_back(id);
    result_.least_nats += nats;
  }

  void next() {
    const double fact = free_.empty() ? 0.0 : fact_rate_;
    const double ask = open_.empty() ? 0.0 : ask_rate_;
    const double drawn = stream_.uniform();
    if (drawn < fact) {
      write_fact(-std::log(fact));
    } else if (drawn < fact + ask) {
      write_question(-std::log(ask));
    } else {
      word_ = (word_ + 1) % task_.options().filler;
      write(word_, -std::log(1.0 - fact - ask));
    }
  }

  void write_fact(double nats_of_mark) {
    const auto choice = static_cast<std::size_t>(below(static_cast<std::int64_t>(free_.size())));
    const double nats_of_key = std::log(static_cast<double>(free_.size()));
    OpenFact fact{.key = free_[choice], .value = below(task_.options().values)};
    free_[choice] = free_.back();
    free_.pop_back();
    write(task_.fact_mark(), nats_of_mark);
    const auto write_value = [&] {
      write(task_.first_value() + fact.value, std::log(static_cast<double>(task_.options().values)));
    };
    if (!task_.options().key_first) write_value();
    fact.position = static_cast<std::int64_t>(result_.ids.size());
    write(task_.first_key() + fact.key, nats_of_key);
    if (task_.options().key_first) write_value();
    open_.push_back(fact);
  }

  void write_question(double nats_of_mark) {
    const auto choice = static_cast<std::size_t>(below(static_cast<std::int64_t>(open_.size())));
    const double nats_of_key = std::log(static_cast<double>(open_.size()));
    const OpenFact fact = open_[choice];
    open_[choice] = open_.back();
    open_.pop_back();
    write(task_.ask_mark(), nats_of_mark);
    const auto asked = static_cast<std::int64_t>(result_.ids.size());
    write(task_.first_key() + fact.key, nats_of_key);
    if (full()) return;
    result_.answers.push_back({.position = asked + 1, .distance = asked - fact.position});
    write(task_.first_value() + fact.value, 0.0);
  }

  const RecallTask& task_;
  RandomStream stream_;
  std::int64_t length_;
  double fact_rate_ = 0.0;
  double ask_rate_ = 0.0;
  std::int64_t word_ = 0;
  std::vector<std::int64_t> free_;
  std::vector<OpenFact> open_;
  RecallSequence result_;
};

}  // namespace

RecallOptions recall_options(const ExperimentConfig& config) {
  require<ConfigError>(config.data.format == DataFormat::recall, "data.format is ", to_string(config.data.format),
                       ", but made-up facts and questions need recall");
  return {.keys = config.data.recall_keys,
          .values = config.data.recall_values,
          .filler = config.data.recall_filler,
          .seed = config.train.seed,
          .key_first = config.data.key_first};
}

RecallTask::RecallTask(const RecallOptions& options) : options_(options) {
  require<ConfigError>(options.keys >= 2 && options.values >= 2 && options.filler >= 1, "recall: ", options.keys,
                       " keys, ", options.values, " values and ", options.filler,
                       " words of filler, but 2, 2 and 1 are the least; raise data.recall_keys, data.recall_values or ",
                       "data.recall_filler");
}

RecallSequence RecallTask::sequence(std::string_view part, std::int64_t number, std::int64_t length) const {
  require<InputError>(number >= 0, "recall: there is no sequence ", number, "; numbers begin at 0");
  require<InputError>(length >= 1, "recall: a sequence of ", length, " tokens was asked for; take at least 1");
  // Held-out sequences are the same for every seed, so that models can be compared on them.
  const std::uint64_t seed = part == "train" ? options_.seed : 0;
  const RandomStream stream(seed, "recall", {number_of_part(part), static_cast<std::uint64_t>(number)});
  return Writer(*this, stream, length).finish();
}

std::int64_t recall_length(const RecallLengths& lengths, std::int64_t batch) {
  require<ConfigError>(lengths.shortest >= 1 && lengths.shortest <= lengths.longest, "recall: lengths from ",
                       lengths.shortest, " to ", lengths.longest,
                       "; the shortest must be at least 1 and no longer than the longest");
  require<ConfigError>(lengths.batches >= 1, "recall: a training of ", lengths.batches, " batches; take at least 1");
  RandomStream stream(lengths.seed, "recall lengths", {static_cast<std::uint64_t>(batch)});
  const double progress = static_cast<double>(batch) / static_cast<double>(lengths.batches);
  const double grown = std::clamp((progress - kGrowthBegins) / (kGrowthEnds - kGrowthBegins), 0.0, 1.0);
  const auto longest = static_cast<double>(lengths.longest);
  const double first = std::min(longest, 2.0 * static_cast<double>(lengths.shortest));
  const double limit = first * std::pow(longest / first, grown);
  const double least = std::max(static_cast<double>(lengths.shortest), limit / 4.0);
  const double length = least * std::exp2(std::log2((limit + 1.0) / least) * stream.uniform());
  return std::clamp(static_cast<std::int64_t>(length), lengths.shortest, lengths.longest);
}

}  // namespace routing
