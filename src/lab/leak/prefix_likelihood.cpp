#include "lab/leak/prefix_likelihood.h"

#include "routing/core/error.h"
#include "routing/core/random.h"
#include "routing/evaluation/likelihood.h"

#include <algorithm>
#include <span>

namespace routing {
namespace {

// Back to the mode the model was in, and nothing left behind of what evaluation counts.
class EvaluationMode {
 public:
  explicit EvaluationMode(SequenceModel& model) : model_(model), was_training_(model.is_training()) { model.eval(); }
  ~EvaluationMode() {
    model_.take_evaluation_statistics();
    model_.train(was_training_);
  }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  SequenceModel& model_;
  bool was_training_;
};

at::Tensor tokens_of(TokenView text, std::int64_t begin, std::int64_t count) {
  at::Tensor tokens = at::empty({1, count}, at::kLong);
  text.copy(begin, std::span(tokens.data_ptr<std::int64_t>(), static_cast<std::size_t>(count)));
  return tokens;
}

// One number of every sample, by its own pass, where it has to be measured.
class Measurement {
 public:
  Measurement(std::int64_t samples, const PrefixLikelihoodOptions& options, bool promised)
      : result_{.promised = promised} {
    const bool all = !promised || options.check_all || options.checks >= samples;
    measured_.resize(static_cast<std::size_t>(samples), all);
    if (all) return;
    RandomStream stream(options.sampling.seed, "checked samples");
    for (const std::int32_t sample :
         sorted_sample(stream, static_cast<std::int32_t>(samples), static_cast<std::int32_t>(options.checks))) {
      measured_[static_cast<std::size_t>(sample)] = true;
    }
  }

  bool wants(std::size_t sample) const { return measured_[sample]; }
  std::int64_t wanted() const { return std::count(measured_.begin(), measured_.end(), true); }
  void compare(double value, double teacher_forced) {
    ++result_.measured;
    if (value != teacher_forced) ++result_.different;
  }
  // The promise was broken: what was believed has to be measured after all.
  bool has_to_go_on() const { return result_.different > 0 && wanted() < static_cast<std::int64_t>(measured_.size()); }
  void turn_to_the_rest() { measured_.flip(); }
  const Agreement& result() const { return result_; }

 private:
  std::vector<bool> measured_;
  Agreement result_;
};

class PrefixPasses {
 public:
  PrefixPasses(SequenceModel& model, TokenView text, const PrefixLikelihoodOptions& options)
      : model_(model), text_(text), options_(options), length_(options.sampling.sequence_length) {}

  PrefixLikelihood run() {
    PrefixLikelihood result{.sequence_length = length_};
    for (const SampledPosition& place : sample_positions(text_.size(), options_.sampling)) {
      result.samples.push_back({.place = place});
    }
    const auto count = static_cast<std::int64_t>(result.samples.size());
    // Only what can be read piece by piece promises not to look at the length (docs/generation.md).
    const bool causal = validity_label(model_.config()) == "causal";
    Measurement replaced(count, options_, causal);
    Measurement prefix(count, options_, causal && model_.reason_against_cache().empty());
    passes_ = result.samples.back().place.window + 1 + replaced.wanted() + prefix.wanted();

    read_whole_windows(result);
    const auto replaced_nats = [&](const SampledPosition& place) { return future_replaced(place); };
    const auto prefix_nats = [&](const SampledPosition& place) { return prefix_only(place); };
    result.future_replaced = measure(result.samples, replaced, replaced_nats, &PrefixSample::future_replaced);
    result.prefix_only = measure(result.samples, prefix, prefix_nats, &PrefixSample::prefix_only);
    return result;
  }

 private:
  ForwardContext context() const { return {.precision = options_.precision}; }
  std::int64_t target(const SampledPosition& place) const { return text_[place.begin + place.position]; }

  void count_pass() {
    ++done_;
    if (options_.progress) options_.progress(std::min(done_, passes_), passes_);
  }

  void read_whole_windows(PrefixLikelihood& result) {
    at::Tensor nats;
    for (PrefixSample& sample : result.samples) {
      if (sample.place.window == static_cast<std::int64_t>(result.window_nats.size())) {
        nats = model_.loss(tokens_of(text_, sample.place.begin, length_), context()).nats;
        NatsSum sum;
        for (std::int64_t i = 0; i < length_; ++i) sum.add(static_cast<double>(nats.data_ptr<float>()[i]));
        result.window_nats.push_back(sum.mean());
        count_pass();
      }
      sample.teacher_forced = static_cast<double>(nats.data_ptr<float>()[sample.place.position]);
      sample.future_replaced = sample.prefix_only = sample.teacher_forced;
    }
  }

  double future_replaced(const SampledPosition& place) {
    at::Tensor tokens = tokens_of(text_, place.begin, length_);
    tokens.narrow(1, place.position, length_ - place.position)
        .copy_(tokens_of(text_, place.replacement_begin + place.position, length_ - place.position));
    return model_.nats_at(tokens, place.position, target(place), context());
  }

  double prefix_only(const SampledPosition& place) {
    return model_.nats_at(tokens_of(text_, place.begin, place.position + 1), place.position, target(place), context());
  }

  template <class Pass>
  Agreement measure(std::vector<PrefixSample>& samples, Measurement& plan, const Pass& nats_of,
                    double PrefixSample::*number) {
    const auto measure_wanted = [&] {
      for (std::size_t i = 0; i < samples.size(); ++i) {
        if (!plan.wants(i)) continue;
        samples[i].*number = nats_of(samples[i].place);
        plan.compare(samples[i].*number, samples[i].teacher_forced);
        count_pass();
      }
    };
    measure_wanted();
    if (plan.has_to_go_on()) {
      plan.turn_to_the_rest();
      passes_ += plan.wanted();
      measure_wanted();
    }
    return plan.result();
  }

  SequenceModel& model_;
  TokenView text_;
  const PrefixLikelihoodOptions& options_;
  std::int64_t length_;
  std::int64_t done_ = 0;
  std::int64_t passes_ = 0;
};

}  // namespace

std::vector<SampledPosition> sample_positions(std::int64_t tokens, const PositionSampling& sampling) {
  const std::int64_t n = sampling.sequence_length;
  for (const auto& [name, value] : {std::pair("sequence_length", n), std::pair("windows", sampling.windows),
                                    std::pair("positions", sampling.positions)}) {
    require<InputError>(value >= 1, "sampled positions: ", name, " is ", value, ", but must be at least 1");
  }
  require<InputError>(sampling.record_length == 0 || sampling.record_length >= n, "sampled positions: windows have ", n,
                      " tokens, but records only ", sampling.record_length, "; lower sequence_length");
  const std::int64_t step = sampling.record_length > 0 ? sampling.record_length : n;
  const std::int64_t there = tokens / step;
  require<InputError>(there >= 2, "sampled positions: ", tokens, " tokens are ", there, " windows of ", step,
                      ", but at least 2 are needed: one to be read, one to replace its future");
  const std::int64_t windows = std::min(sampling.windows, there);
  const std::int64_t positions = std::min(sampling.positions, n);
  RandomStream choice(sampling.seed, "sampled windows");
  const std::vector<std::int32_t> chosen =
      sorted_sample(choice, static_cast<std::int32_t>(there), static_cast<std::int32_t>(windows));
  std::vector<SampledPosition> result;
  for (std::int64_t window = 0; window < windows; ++window) {
    const std::int64_t own = chosen[static_cast<std::size_t>(window)];
    RandomStream stream(sampling.seed, "sampled positions", {static_cast<std::uint64_t>(window)});
    for (std::int64_t part = 0; part < positions; ++part) {
      const std::int64_t first = part * n / positions;
      const std::int64_t size = (part + 1) * n / positions - first;
      const std::int64_t position = first + stream.below(static_cast<std::uint32_t>(size));
      // Any window but its own.
      const std::int64_t drawn = stream.below(static_cast<std::uint32_t>(there - 1));
      const std::int64_t other = drawn < own ? drawn : drawn + 1;
      result.push_back(
          {.window = window, .begin = own * step, .position = position, .replacement_begin = other * step});
    }
  }
  return result;
}

PrefixLikelihood prefix_likelihood(SequenceModel& model, TokenView tokens, const PrefixLikelihoodOptions& options) {
  require<InputError>(options.checks >= 1, "prefix likelihood: checks is ", options.checks,
                      ", but at least 1 sample must be measured");
  const EvaluationMode mode(model);
  const at::NoGradGuard no_gradient;
  return PrefixPasses(model, tokens, options).run();
}

}  // namespace routing
