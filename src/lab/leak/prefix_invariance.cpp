#include "lab/leak/prefix_invariance.h"

#include "routing/core/error.h"
#include "routing/core/random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <utility>

namespace routing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Another id than this one, each equally likely.
std::int64_t other_id(RandomStream& stream, std::int64_t id, std::int64_t vocab_size) {
  const auto drawn = static_cast<std::int64_t>(stream.below(static_cast<std::uint32_t>(vocab_size - 1)));
  return drawn < id ? drawn : drawn + 1;
}

struct Trial {
  PrefixChange change = {};
  at::Tensor tokens = {};
};

// What is tried on one sequence.
std::vector<Trial> trials_of(const at::Tensor& tokens, std::int64_t sequence, const std::vector<std::int64_t>& cuts,
                             const PrefixInvarianceOptions& options) {
  const std::int64_t last = tokens.size(1) - 2;
  const bool has_other = tokens.size(0) > 1;
  std::vector<std::pair<FutureChange, std::int64_t>> wanted;
  for (const std::int64_t cut : cuts) {
    wanted.emplace_back(FutureChange::drawn, cut);
    wanted.emplace_back(FutureChange::reversed, cut);
    if (has_other) wanted.emplace_back(FutureChange::replaced, cut);
  }
  wanted.emplace_back(FutureChange::last, last);
  std::vector<Trial> trials;
  for (const auto& [change, first] : wanted) {
    const at::Tensor changed = with_other_future(tokens[sequence], {.change = change,
                                                                    .first = first,
                                                                    .vocab_size = options.vocab_size,
                                                                    .seed = options.seed,
                                                                    .other = tokens[(sequence + 1) % tokens.size(0)]});
    // The last token is never read; a change of it alone is none.
    if (at::equal(changed.narrow(0, 0, last + 1), tokens[sequence].narrow(0, 0, last + 1))) continue;
    trials.push_back({.change = {.change = change, .sequence = sequence, .first_changed = first}, .tokens = changed});
  }
  return trials;
}

void compare_rows(const at::Tensor& before, const at::Tensor& after, PrefixChange& change) {
  const std::int64_t vocabulary = before.size(1);
  const auto bytes = static_cast<std::size_t>(vocabulary) * sizeof(float);
  for (std::int64_t row = 0; row <= change.first_changed; ++row) {
    const float* const old_row = before.data_ptr<float>() + row * vocabulary;
    const float* const new_row = after.data_ptr<float>() + row * vocabulary;
    if (std::memcmp(old_row, new_row, bytes) == 0) continue;
    if (change.rows_changed == 0) change.first_row = row;
    ++change.rows_changed;
    change.largest = std::max(change.largest, largest_change(old_row, new_row, vocabulary));
  }
}

at::Tensor checked_logits(const LogitsFunction& logits, const at::Tensor& tokens) {
  const at::NoGradGuard no_gradient;
  at::Tensor result = logits(tokens).contiguous();
  require<InputError>(result.dim() == 3 && result.size(0) == tokens.size(0) && result.size(1) == tokens.size(1) &&
                          result.scalar_type() == at::kFloat,
                      "prefix invariance: tokens ", tokens.sizes(), " gave ", result.scalar_type(), " ", result.sizes(),
                      ", but float logits [batch, tokens, vocabulary] are needed");
  return result;
}

// Counts passes over batches, for people who wait.
class Passes {
 public:
  Passes(const LogitsFunction& logits, const PrefixInvarianceOptions& options, std::int64_t total)
      : logits_(logits), options_(options), total_(total) {}

  at::Tensor operator()(const at::Tensor& tokens) {
    at::Tensor result = checked_logits(logits_, tokens);
    ++done_;
    if (options_.progress) options_.progress(std::min(done_, total_), total_);
    return result;
  }

 private:
  const LogitsFunction& logits_;
  const PrefixInvarianceOptions& options_;
  std::int64_t total_;
  std::int64_t done_ = 0;
};

}  // namespace

double largest_change(const float* before, const float* after, std::int64_t count) {
  double largest = 0.0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (std::bit_cast<std::uint32_t>(before[i]) == std::bit_cast<std::uint32_t>(after[i])) continue;
    const double difference = std::abs(static_cast<double>(before[i]) - static_cast<double>(after[i]));
    largest = std::max(largest, std::isnan(difference) ? kInfinity : difference);
  }
  return largest;
}

bool PrefixReport::causal() const {
  return worst() == nullptr;
}

double PrefixReport::largest() const {
  double result = 0.0;
  for (const PrefixChange& each : changes) result = std::max(result, each.largest);
  return result;
}

std::int64_t PrefixReport::rows_checked() const {
  std::int64_t rows = 0;
  for (const PrefixChange& each : changes) rows += each.first_changed + 1;
  return rows;
}

std::int64_t PrefixReport::rows_changed() const {
  std::int64_t rows = 0;
  for (const PrefixChange& each : changes) rows += each.rows_changed;
  return rows;
}

const PrefixChange* PrefixReport::worst() const {
  const PrefixChange* found = nullptr;
  for (const PrefixChange& each : changes) {
    if (each.rows_changed > (found == nullptr ? 0 : found->rows_changed)) found = &each;
  }
  return found;
}

std::vector<std::int64_t> cut_positions(std::int64_t tokens, std::int64_t count, std::uint64_t seed) {
  const std::int64_t all = tokens - 1;
  std::set<std::int64_t> cuts;
  const std::int64_t wanted = std::min(count, all);
  const std::int64_t spread = std::max<std::int64_t>(1, wanted / 2);
  // In the middles of equal parts: the very first position has no past that could be told.
  for (std::int64_t i = 0; i < spread; ++i) cuts.insert((2 * i + 1) * all / (2 * spread));
  RandomStream stream(seed, "audit cuts");
  while (static_cast<std::int64_t>(cuts.size()) < wanted) cuts.insert(stream.below(static_cast<std::uint32_t>(all)));
  return {cuts.begin(), cuts.end()};
}

at::Tensor with_other_future(const at::Tensor& sequence, const FutureDraw& draw) {
  at::Tensor changed = sequence.clone();
  const std::int64_t rest = changed.size(0) - draw.first;
  auto* const ids = changed.data_ptr<std::int64_t>();
  RandomStream stream(draw.seed, "audit future",
                      {static_cast<std::uint64_t>(draw.change), static_cast<std::uint64_t>(draw.first)});
  switch (draw.change) {
    case FutureChange::drawn:
      for (std::int64_t i = draw.first; i < changed.size(0); ++i) ids[i] = other_id(stream, ids[i], draw.vocab_size);
      break;
    case FutureChange::reversed:
      std::reverse(ids + draw.first, ids + changed.size(0));
      break;
    case FutureChange::replaced:
      changed.narrow(0, draw.first, rest).copy_(draw.other.narrow(0, draw.first, rest));
      break;
    case FutureChange::last:
      ids[changed.size(0) - 2] = other_id(stream, ids[changed.size(0) - 2], draw.vocab_size);
      break;
  }
  return changed;
}

PrefixReport check_prefix_invariance(const LogitsFunction& logits, const at::Tensor& tokens,
                                     const PrefixInvarianceOptions& options) {
  require<InputError>(tokens.dim() == 2 && tokens.scalar_type() == at::kLong && tokens.size(0) > 0,
                      "prefix invariance: tokens are ", tokens.scalar_type(), " ", tokens.sizes(),
                      ", but int64 [sequences, tokens] is needed");
  require<InputError>(tokens.size(1) >= 2 && options.vocab_size >= 2, "prefix invariance: sequences of ",
                      tokens.size(1), " tokens over ", options.vocab_size,
                      " ids have no future to change; it takes at least 2 tokens and 2 ids");
  require<InputError>(options.positions >= 1 && options.batch_size >= 1, "prefix invariance: ", options.positions,
                      " positions in batches of ", options.batch_size, ", but both must be at least 1");
  const std::vector<std::int64_t> cuts = cut_positions(tokens.size(1), options.positions, options.seed);
  const std::int64_t sequences = tokens.size(0);
  std::vector<std::vector<Trial>> trials;
  std::int64_t passes = 0;
  for (std::int64_t sequence = 0; sequence < sequences; ++sequence) {
    std::vector<std::int64_t> own;
    for (auto i = static_cast<std::size_t>(sequence); i < cuts.size(); i += static_cast<std::size_t>(sequences)) {
      own.push_back(cuts[i]);
    }
    trials.push_back(trials_of(tokens.contiguous(), sequence, own, options));
    passes += 1 + (static_cast<std::int64_t>(trials.back().size()) + options.batch_size - 1) / options.batch_size;
  }
  Passes run(logits, options, passes);
  PrefixReport report{
      .tokens = tokens.size(1), .sequences = sequences, .positions = static_cast<std::int64_t>(cuts.size())};
  for (std::int64_t sequence = 0; sequence < sequences; ++sequence) {
    const at::Tensor unchanged = tokens[sequence].expand({options.batch_size, tokens.size(1)}).contiguous();
    const at::Tensor before = run(unchanged)[0].clone();
    std::vector<Trial>& own = trials[static_cast<std::size_t>(sequence)];
    for (std::size_t first = 0; first < own.size(); first += static_cast<std::size_t>(options.batch_size)) {
      const std::size_t end = std::min(own.size(), first + static_cast<std::size_t>(options.batch_size));
      at::Tensor batch = unchanged.clone();
      for (std::size_t i = first; i < end; ++i) batch[static_cast<std::int64_t>(i - first)].copy_(own[i].tokens);
      const at::Tensor after = run(batch);
      for (std::size_t i = first; i < end; ++i) {
        compare_rows(before, after[static_cast<std::int64_t>(i - first)], own[i].change);
        report.changes.push_back(own[i].change);
      }
    }
  }
  return report;
}

}  // namespace routing
