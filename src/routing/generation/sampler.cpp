#include "routing/generation/sampler.h"

#include "routing/core/error.h"
#include "routing/core/random.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace routing {
namespace {

constexpr double kLowestPenalty = 0.01;
constexpr double kHighestPenalty = 100.0;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
// So few are sorted rather than halved.
constexpr std::size_t kFew = 64;

// The largest logit, after all of them were looked at.
float largest_logit(std::span<const float> logits) {
  require<InputError>(!logits.empty(), "there are no logits to draw a token from; give one for each id");
  require<InputError>(logits.size() <= std::size_t{std::numeric_limits<std::int32_t>::max()}, logits.size(),
                      " logits are more than ids of 32 bits can number");
  float largest = -kInfinity;
  for (std::size_t id = 0; id < logits.size(); ++id) {
    const float logit = logits[id];
    if (logit < kInfinity) {  // not so for NaN
      largest = std::max(largest, logit);
      continue;
    }
    require<InputError>(false, "the logit of token ", id, " of ", logits.size(), " is ", logit,
                        ", but only finite numbers and -inf can be drawn from; look for weights that are not finite");
  }
  require<InputError>(largest > -kInfinity, "the logits of all tokens, 0 to ", logits.size() - 1,
                      ", are -inf, so none can be drawn; leave at least one finite");
  return largest;
}

// log softmax: in double, and relative to the largest logit, so that large logits cost no digits.
class LogProbabilities {
 public:
  explicit LogProbabilities(std::span<const float> logits) : logits_(logits), largest_(largest_logit(logits)) {
    double sum = 0.0;
    for (const float logit : logits) sum += std::exp(double{logit} - largest_);
    log_sum_ = std::log(sum);
  }
  double of(std::int32_t token) const { return double{logits_[static_cast<std::size_t>(token)]} - largest_ - log_sum_; }

 private:
  std::span<const float> logits_;
  double largest_;
  double log_sum_ = 0.0;
};

template <class Value>
void require_option(bool holds, const char* name, const Value& value, const char* rule) {
  require<ConfigError>(holds, "sampling: ", name, " is ", value, ", but must be ", rule);
}

}  // namespace

void validate(const SamplingOptions& options) {
  require_option(options.temperature >= 0.0 && std::isfinite(options.temperature), "temperature", options.temperature,
                 "a finite number from 0 on; use 0 for the most likely token, 1 for the model's own probabilities");
  require_option(options.top_k >= 0, "top_k", options.top_k, "0 or more; use 0 to keep all tokens");
  require_option(options.top_p > 0.0 && options.top_p <= 1.0, "top_p", options.top_p,
                 "above 0 and at most 1; use 1 to keep all tokens");
  require_option(options.min_p >= 0.0 && options.min_p <= 1.0, "min_p", options.min_p,
                 "between 0 and 1; use 0 to keep all tokens");
  require_option(options.repetition_penalty >= kLowestPenalty && options.repetition_penalty <= kHighestPenalty,
                 "repetition_penalty", options.repetition_penalty, "between 0.01 and 100; use 1 for no penalty");
}

Sampler::Sampler(const SamplingOptions& options) {
  set_options(options);
}

void Sampler::set_options(const SamplingOptions& options) {
  validate(options);
  options_ = options;
}

// A strict order: no two candidates are equal in it. A type of its own, so that sorting calls no function.
struct Sampler::Before {
  bool operator()(const Candidate& one, const Candidate& other) const {
    return one.logit != other.logit ? one.logit > other.logit : one.token < other.token;
  }
};

double Sampler::mass_of(std::span<const Candidate> candidates) {
  double mass = 0.0;
  for (const Candidate& candidate : candidates) mass += candidate.weight;
  return mass;
}

// Moves to the front the fewest most likely candidates whose mass is enough, the last of them behind the others, and
// returns how many; all of them if even that is not enough. Like quickselect: each round halves what is undecided.
template <class Enough>
std::size_t Sampler::shortest_prefix(std::span<Candidate> candidates, const Enough& is_enough) {
  std::size_t begin = 0;
  std::size_t end = candidates.size();
  double before = 0.0;
  while (end - begin > kFew) {
    const std::size_t half = (end - begin) / 2;
    const auto undecided = candidates.subspan(begin, end - begin);
    std::nth_element(undecided.begin(), undecided.begin() + static_cast<std::ptrdiff_t>(half), undecided.end(),
                     Before{});
    const double with_half = before + mass_of(undecided.first(half));
    if (is_enough(with_half)) {
      end = begin + half;
    } else {
      begin += half;
      before = with_half;
    }
  }
  const auto undecided = candidates.subspan(begin, end - begin);
  std::sort(undecided.begin(), undecided.end(), Before{});
  for (; begin < end; ++begin) {
    before += candidates[begin].weight;
    if (is_enough(before)) return begin + 1;
  }
  return end;
}

void Sampler::collect(std::span<const float> logits, std::span<const std::int32_t> seen) {
  const double penalty = options_.repetition_penalty;
  if (penalty == 1.0) seen = {};
  is_seen_.resize(logits.size());
  for (const std::int32_t id : seen) {
    require<InputError>(id >= 0 && static_cast<std::size_t>(id) < logits.size(), "token ", id,
                        " is among those seen, but there are ", logits.size(),
                        " logits; give ids of the same vocabulary");
  }
  for (const std::int32_t id : seen) is_seen_[static_cast<std::size_t>(id)] = true;
  kept_.clear();
  kept_.reserve(logits.size());
  for (std::size_t id = 0; id < logits.size(); ++id) {
    if (logits[id] == -kInfinity) continue;
    double logit = logits[id];
    if (is_seen_[id]) logit = logit > 0.0 ? logit / penalty : logit * penalty;
    kept_.push_back({.logit = logit, .weight = 0.0, .token = static_cast<std::int32_t>(id)});
  }
  for (const std::int32_t id : seen) is_seen_[static_cast<std::size_t>(id)] = false;
}

// The selection runs on a copy, so that what stays is in the order of ids, whatever the library's algorithm does.
void Sampler::keep_most_likely(std::size_t count) {
  scratch_ = kept_;
  const auto last = scratch_.begin() + static_cast<std::ptrdiff_t>(count - 1);
  std::nth_element(scratch_.begin(), last, scratch_.end(), Before{});
  std::erase_if(kept_, [&](const Candidate& candidate) { return Before{}(*last, candidate); });
}

// The difference from the largest comes first, so that no temperature, however small, can overflow.
void Sampler::weigh() {
  heaviest_ = kept_.front().logit;
  for (const Candidate& candidate : kept_) heaviest_ = std::max(heaviest_, candidate.logit);
  mass_ = 0.0;
  for (Candidate& candidate : kept_) {
    candidate.weight = std::exp((candidate.logit - heaviest_) / options_.temperature);
    mass_ += candidate.weight;
  }
  std::erase_if(kept_, [](const Candidate& candidate) { return candidate.weight == 0.0; });
}

// Are weights and their sum those of the model's own softmax, number by number? Then none is computed twice.
bool Sampler::weighs_as_model(std::size_t vocabulary) const {
  return options_.temperature == 1.0 && options_.repetition_penalty == 1.0 &&
         (options_.top_k == 0 || static_cast<std::size_t>(options_.top_k) >= vocabulary);
}

void Sampler::keep_nucleus() {
  const double mass = mass_;
  const double wanted = options_.top_p * mass;
  // Tokens lighter than this together weigh less than half of what the nucleus may leave out, so none is part of it.
  const double light = 0.5 * (1.0 - options_.top_p) * mass / static_cast<double>(kept_.size());
  std::erase_if(kept_, [&](const Candidate& candidate) { return candidate.weight < light; });
  kept_.resize(shortest_prefix(kept_, [&](double reached) { return reached >= wanted; }));
}

void Sampler::keep(std::span<const float> logits, std::span<const std::int32_t> seen) {
  collect(logits, seen);
  if (options_.temperature == 0.0) {
    std::swap(kept_.front(), *std::min_element(kept_.begin(), kept_.end(), Before{}));
    kept_.resize(1);
    kept_.front().weight = 1.0;
    return;
  }
  const auto most = static_cast<std::size_t>(options_.top_k);
  if (most > 0 && most < kept_.size()) keep_most_likely(most);
  weigh();
  if (options_.top_p < 1.0) keep_nucleus();
  // The largest weight is one.
  std::erase_if(kept_, [&](const Candidate& candidate) { return candidate.weight < options_.min_p; });
}

TokenDraw Sampler::draw(std::span<const float> logits, std::span<const std::int32_t> seen, const DrawPlace& place) {
  largest_logit(logits);
  keep(logits, seen);
  const double wanted = RandomStream(options_.seed, "token", {place.sample, place.position}).uniform() * mass_of(kept_);
  const std::size_t length = shortest_prefix(kept_, [&](double reached) { return reached > wanted; });
  const Candidate& taken = kept_[length - 1];
  const double log_probability = weighs_as_model(logits.size()) ? taken.logit - heaviest_ - std::log(mass_)
                                                                : LogProbabilities(logits).of(taken.token);
  return {.token = taken.token, .log_probability = log_probability};
}

std::vector<TokenProbability> Sampler::distribution(std::span<const float> logits, std::span<const std::int32_t> seen) {
  largest_logit(logits);
  keep(logits, seen);
  std::sort(kept_.begin(), kept_.end(), Before{});
  const double mass = mass_of(kept_);
  std::vector<TokenProbability> probabilities;
  probabilities.reserve(kept_.size());
  for (const Candidate& candidate : kept_) probabilities.push_back({candidate.token, candidate.weight / mass});
  return probabilities;
}

double log_probability(std::span<const float> logits, std::int32_t token) {
  require<InputError>(token >= 0 && static_cast<std::size_t>(token) < logits.size(), "there is no token ", token,
                      " among ", logits.size(), " logits");
  return LogProbabilities(logits).of(token);
}

std::vector<TokenDraw> most_likely(std::span<const float> logits, std::int64_t count) {
  require<InputError>(count >= 0, "the ", count, " most likely tokens were asked for; ask for 0 or more");
  const LogProbabilities log_probabilities(logits);
  const auto is_before = [&](std::int32_t one, std::int32_t other) {
    const float first = logits[static_cast<std::size_t>(one)];
    const float second = logits[static_cast<std::size_t>(other)];
    return first != second ? first > second : one < other;
  };
  std::vector<std::int32_t> ids;
  for (std::size_t id = 0; id < logits.size(); ++id) {
    if (logits[id] > -kInfinity) ids.push_back(static_cast<std::int32_t>(id));
  }
  const std::size_t length = std::min(ids.size(), static_cast<std::size_t>(count));
  std::partial_sort(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(length), ids.end(), is_before);
  std::vector<TokenDraw> tokens;
  for (std::size_t place = 0; place < length; ++place) {
    tokens.push_back({ids[place], log_probabilities.of(ids[place])});
  }
  return tokens;
}

}  // namespace routing
