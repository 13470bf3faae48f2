#include "routing/data/tasks/sequence_tasks.h"

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
  require<InputError>(found != names.end(), "sequence task: '", part,
                      "' is not part of the data; name train, valid or test");
  return static_cast<std::uint64_t>(found - names.begin());
}

// One side of the pairs.
PaddedSequences padded(const std::vector<SequencePair>& pairs, std::vector<std::int64_t> SequencePair::*side) {
  std::size_t longest = 0;
  for (const SequencePair& pair : pairs) longest = std::max(longest, (pair.*side).size());
  PaddedSequences result;
  result.length = static_cast<std::int64_t>(longest);
  for (const SequencePair& pair : pairs) {
    const std::vector<std::int64_t>& sequence = pair.*side;
    const std::size_t padding = longest - sequence.size();
    result.ids.insert(result.ids.end(), sequence.begin(), sequence.end());
    result.ids.insert(result.ids.end(), padding, 0);
    result.valid.insert(result.valid.end(), sequence.size(), 1);
    result.valid.insert(result.valid.end(), padding, 0);
  }
  return result;
}

}  // namespace

SequenceTaskOptions sequence_task_options(const ExperimentConfig& config) {
  const DataFormat format = config.data.format;
  require<ConfigError>(format == DataFormat::copy || format == DataFormat::reverse, "data.format is ",
                       to_string(format), ", but made-up pairs of sequences need copy or reverse");
  const std::int64_t longest = source_length(config.train);
  return {.task = format == DataFormat::copy ? SequenceTask::copy : SequenceTask::reverse,
          .vocab_size = config.model.vocab_size,
          .shortest = config.train.shortest_length > 0 ? config.train.shortest_length : longest,
          .longest = longest,
          .pairs_of_a_length = config.train.batch_size,
          .seed = config.train.seed};
}

SequencePairs::SequencePairs(const SequenceTaskOptions& options) : options_(options) {
  require<ConfigError>(options.vocab_size > kFirstSymbol, "sequence task: ", options.vocab_size,
                       " ids, but a start, an end and a symbol are 3; raise model.vocab_size");
  require<ConfigError>(options.shortest >= 1 && options.shortest <= options.longest, "sequence task: lengths from ",
                       options.shortest, " to ", options.longest,
                       "; the shortest must be at least 1 and no longer than the longest");
  require<ConfigError>(options.pairs_of_a_length >= 1, "sequence task: ", options.pairs_of_a_length,
                       " pairs of a length, but it must be at least 1");
}

std::int64_t SequencePairs::training_length(std::int64_t number) const {
  RandomStream stream(options_.seed, "sequence lengths",
                      {static_cast<std::uint64_t>(number / options_.pairs_of_a_length)});
  const auto shortest = static_cast<double>(options_.shortest);
  const double octaves = std::log2((static_cast<double>(options_.longest) + 1.0) / shortest);
  const auto length = static_cast<std::int64_t>(shortest * std::exp2(octaves * stream.uniform()));
  return std::clamp(length, options_.shortest, options_.longest);
}

SequencePair SequencePairs::pair(std::string_view part, std::int64_t number) const {
  require<InputError>(number >= 0, "sequence task: there is no pair ", number, "; numbers begin at 0");
  RandomStream stream(options_.seed, "sequence task", {number_of_part(part), static_cast<std::uint64_t>(number)});
  const std::int64_t length = part == "train" ? training_length(number) : options_.longest;
  SequencePair pair;
  for (std::int64_t i = 0; i < length; ++i) {
    pair.source.push_back(kFirstSymbol + stream.below(static_cast<std::uint32_t>(options_.vocab_size - kFirstSymbol)));
  }
  pair.target = pair.source;
  if (options_.task == SequenceTask::reverse) std::reverse(pair.target.begin(), pair.target.end());
  pair.target.push_back(kEndSymbol);
  return pair;
}

PairBatch SequencePairs::batch(std::string_view part, std::int64_t first, std::int64_t rows) const {
  require<InputError>(rows >= 1, "sequence task: a batch of ", rows, " pairs; take at least 1");
  std::vector<SequencePair> pairs;
  for (std::int64_t row = 0; row < rows; ++row) pairs.push_back(pair(part, first + row));
  return {.rows = rows, .source = padded(pairs, &SequencePair::source), .target = padded(pairs, &SequencePair::target)};
}

}  // namespace routing
