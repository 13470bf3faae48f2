#include "routing/generation/generate.h"

#include "routing/core/error.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <utility>

namespace routing {
namespace {

SampleOptions sample_options(const GenerateOptions& options) {
  return {.sampling = options.sampling,
          .max_new_tokens = options.max_new_tokens,
          .end_token = options.end_token,
          .known_tokens = options.known_tokens};
}

// Hands tokens on to a TokenListener, and remembers what came.
class Steps : public SampleListener {
 public:
  explicit Steps(const TokenListener& listener) : listener_(&listener) {}

  bool drawn(const SampleName& name, const TokenDraw& draw, std::span<const float> logits) override {
    steps_.push_back({.sample = name.sample, .draw = draw});
    return !*listener_ || (*listener_)(name.sample, draw, logits);
  }
  void ended(const SampleName& /*name*/, StopReason reason) override { steps_.back().stop = reason; }
  void failed(const SampleName& /*name*/, std::exception_ptr error) override { std::rethrow_exception(error); }

  std::vector<Generation::Step> take() { return std::move(steps_); }

 private:
  const TokenListener* listener_;
  std::vector<Generation::Step> steps_;
};

}  // namespace

Generation::Generation(Decoder& decoder, const GenerateOptions& options)
    : decoder_(&decoder), options_(options), samples_(decoder) {
  validate(sample_options(options));
}

void Generation::begin(std::span<const std::int32_t> prompt, std::size_t first, std::size_t count) {
  const auto given = static_cast<std::int64_t>(prompt.size());
  const auto samples = static_cast<std::int64_t>(count);
  const std::int64_t left = most_new_tokens(*decoder_, given, options_.max_new_tokens);
  Decoder::Begun begun = decoder_->begin(prompt, {.new_tokens = left * samples, .forks = samples - 1});
  const auto logits = std::make_shared<const std::vector<float>>(std::move(begun.logits));
  for (std::size_t number = first; number < first + count; ++number) {
    samples_.add({.name = {.sample = number},
                  .stream = options_.first_sample + number,
                  .sequence = number == first ? begun.sequence : decoder_->fork(begun.sequence),
                  .prompt = prompt,
                  .logits = logits},
                 sample_options(options_));
  }
}

std::vector<Generation::Step> Generation::step(const TokenListener& listener) {
  Steps steps(listener);
  samples_.step(steps);
  return steps.take();
}

std::vector<Sample> generate(Decoder& decoder, std::span<const std::vector<std::int32_t>> prompts,
                             const GenerateOptions& options, const TokenListener& listener) {
  require<ConfigError>(options.samples_per_prompt >= 1 && options.batch_size >= 1, "generate: samples_per_prompt is ",
                       options.samples_per_prompt, " and batch_size ", options.batch_size,
                       ", but both must be at least 1");
  const auto each = static_cast<std::size_t>(options.samples_per_prompt);
  const auto batch = static_cast<std::size_t>(options.batch_size);
  std::vector<Sample> samples(prompts.size() * each);
  for (std::size_t number = 0; number < samples.size(); ++number) {
    samples[number].prompt = static_cast<std::int64_t>(number / each);
  }
  for (std::size_t first = 0; first < samples.size(); first += batch) {
    const std::size_t last = std::min(samples.size(), first + batch);
    Generation generation(decoder, options);
    for (std::size_t number = first; number < last;) {
      const std::size_t end = std::min(last, (number / each + 1) * each);
      generation.begin(prompts[number / each], number, end - number);
      number = end;
    }
    while (generation.goes_on()) {
      for (const Generation::Step& step : generation.step(listener)) {
        Sample& sample = samples[step.sample];
        sample.tokens.push_back(step.draw.token);
        sample.log_probabilities.push_back(step.draw.log_probability);
        if (step.stop) sample.stop = *step.stop;
      }
    }
  }
  return samples;
}

}  // namespace routing
