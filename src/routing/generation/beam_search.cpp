#include "routing/generation/beam_search.h"

#include "routing/core/error.h"
#include "routing/generation/sampler.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace routing {
namespace {

struct Beam {
  std::int64_t sequence = 0;
  std::vector<std::int32_t> tokens = {};
  double log_probability = 0.0;
};

struct Extension {
  std::size_t beam = 0;
  TokenDraw token = {};
  double log_probability = 0.0;
};

class Search {
 public:
  Search(Decoder& decoder, const BeamOptions& options) : decoder_(decoder), options_(options) {}
  ~Search() {
    for (const Beam& beam : beams_) {
      if (beam.sequence >= 0) decoder_.drop(beam.sequence);
    }
  }
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  std::vector<Hypothesis> run(std::span<const std::int32_t> prompt) {
    const Decoder::Begun begun =
        decoder_.begin(prompt, {.new_tokens = options_.beams * options_.max_new_tokens, .forks = options_.beams - 1});
    beams_.push_back({.sequence = begun.sequence});
    std::vector<Extension> extensions = extensions_of({begun.logits});
    std::int64_t most = options_.max_new_tokens;
    if (decoder_.longest_sequence() > 0) {
      const auto given = decoder_.reads_source() ? 0 : static_cast<std::int64_t>(prompt.size());
      most = std::min(most, decoder_.longest_sequence() - given);
    }
    for (std::int64_t length = 1;; ++length) {
      take(extensions);
      if (length == most || beams_.empty() || cannot_improve(length, most)) break;
      extensions = extensions_of(step());
    }
    // What had no time to end comes after what did.
    for (const Beam& beam : beams_) add(beam.tokens, beam.log_probability, false);
    if (ended_.size() > static_cast<std::size_t>(options_.beams)) {
      ended_.resize(static_cast<std::size_t>(options_.beams));
    }
    return std::move(ended_);
  }

 private:
  double score(double log_probability, std::int64_t length) const {
    return log_probability / std::pow(static_cast<double>(length), options_.length_penalty);
  }

  // Keeps ended_ in order, ended ones first.
  void add(const std::vector<std::int32_t>& tokens, double log_probability, bool ended) {
    const Hypothesis made{tokens, log_probability, score(log_probability, static_cast<std::int64_t>(tokens.size())),
                          ended};
    const auto place = std::upper_bound(
        ended_.begin(), ended_.end(), made,
        [](const Hypothesis& a, const Hypothesis& b) { return a.ended != b.ended ? a.ended : a.score > b.score; });
    ended_.insert(place, made);
  }

  std::vector<std::vector<float>> step() {
    std::vector<std::int64_t> sequences;
    std::vector<std::int32_t> tokens;
    for (const Beam& beam : beams_) {
      sequences.push_back(beam.sequence);
      tokens.push_back(beam.tokens.back());
    }
    const at::Tensor logits = decoder_.step(sequences, tokens).contiguous();
    std::vector<std::vector<float>> rows;
    for (std::int64_t row = 0; row < logits.size(0); ++row) {
      const float* first = logits.data_ptr<float>() + row * logits.size(1);
      rows.emplace_back(first, first + logits.size(1));
    }
    return rows;
  }

  // The best, as many as can be needed if each beam's best one ends.
  std::vector<Extension> extensions_of(const std::vector<std::vector<float>>& logits) const {
    std::vector<Extension> all;
    const auto wanted = static_cast<std::size_t>(2 * options_.beams);
    for (std::size_t beam = 0; beam < beams_.size(); ++beam) {
      const auto known = static_cast<std::size_t>(options_.known_tokens);
      std::span<const float> row = logits[beam];
      if (known > 0 && known < row.size()) row = row.first(known);
      for (const TokenDraw& token : most_likely(row, static_cast<std::int64_t>(wanted))) {
        all.push_back({beam, token, beams_[beam].log_probability + token.log_probability});
      }
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Extension& a, const Extension& b) { return a.log_probability > b.log_probability; });
    if (all.size() > wanted) all.resize(wanted);
    return all;
  }

  void take(const std::vector<Extension>& extensions) {
    std::vector<Beam> next;
    std::vector<std::int64_t> uses(beams_.size(), 0);
    std::vector<std::size_t> from;
    for (const Extension& extension : extensions) {
      if (next.size() == static_cast<std::size_t>(options_.beams)) break;
      std::vector<std::int32_t> tokens = beams_[extension.beam].tokens;
      tokens.push_back(extension.token.token);
      if (extension.token.token == options_.end_token) {
        add(tokens, extension.log_probability, true);
        continue;
      }
      next.push_back({0, std::move(tokens), extension.log_probability});
      from.push_back(extension.beam);
      ++uses[extension.beam];
    }
    // The last user of a sequence goes on with it, the others with forks; nobody's sequence is dropped.
    for (std::size_t i = 0; i < next.size(); ++i) {
      Beam& source = beams_[from[i]];
      next[i].sequence = --uses[from[i]] > 0 ? decoder_.fork(source.sequence) : std::exchange(source.sequence, -1);
    }
    for (const Beam& beam : beams_) {
      if (beam.sequence >= 0) decoder_.drop(beam.sequence);
    }
    beams_ = std::move(next);
  }

  // Log probabilities only fall. With a penalty the score of a falling sum may rise with length, but never above this.
  bool cannot_improve(std::int64_t length, std::int64_t most) const {
    if (static_cast<std::int64_t>(ended_.size()) < options_.beams) return false;
    const double best = beams_.front().log_probability;
    const std::int64_t at = options_.length_penalty > 0.0 ? most : length;
    return ended_[static_cast<std::size_t>(options_.beams) - 1].score >= score(best, at);
  }

  // NOLINTBEGIN(cppcoreguidelines-avoid-const-or-ref-data-members): lives for one call
  Decoder& decoder_;
  const BeamOptions& options_;
  // NOLINTEND(cppcoreguidelines-avoid-const-or-ref-data-members)
  std::vector<Beam> beams_;
  std::vector<Hypothesis> ended_;
};

}  // namespace

std::vector<Hypothesis> beam_search(Decoder& decoder, std::span<const std::int32_t> prompt,
                                    const BeamOptions& options) {
  require<ConfigError>(options.beams >= 1 && options.beams <= decoder.vocabulary_size(), "beams is ", options.beams,
                       ", but must be between 1 and the size of the vocabulary, ", decoder.vocabulary_size());
  require<ConfigError>(options.max_new_tokens >= 1, "max_new_tokens is ", options.max_new_tokens,
                       ", but must be at least 1");
  require<ConfigError>(options.length_penalty >= 0.0 && std::isfinite(options.length_penalty), "length_penalty is ",
                       options.length_penalty, ", but must be a number of at least 0");
  return Search(decoder, options).run(prompt);
}

}  // namespace routing
