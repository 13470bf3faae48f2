#include "routing/generation/generate.h"

#include "routing/core/error.h"

#include <algorithm>
#include <utility>

namespace routing {
Generation::Generation(Decoder& decoder, const GenerateOptions& options)
    : decoder_(&decoder), options_(options), sampler_(options.sampling) {
  require<ConfigError>(options.max_new_tokens >= 1, "generate: max_new_tokens is ", options.max_new_tokens,
                       ", but must be at least 1");
}

Generation::~Generation() {
  for (const Active& active : active_) decoder_->drop(active.sequence);
}

void Generation::begin(std::span<const std::int32_t> prompt, std::size_t first, std::size_t count) {
  const bool reads_source = decoder_->reads_source();
  const std::int64_t longest = decoder_->longest_sequence();
  const auto given = static_cast<std::int64_t>(prompt.size());
  const std::int64_t room = longest == 0 ? options_.max_new_tokens : longest - (reads_source ? 0 : given);
  const std::int64_t left = std::min(options_.max_new_tokens, room);
  const auto forks = static_cast<std::int64_t>(count) - 1;
  const Decoder::Begun begun = decoder_->begin(prompt, {.new_tokens = left * (forks + 1), .forks = forks});
  active_.reserve(active_.size() + count);
  for (std::size_t number = first; number < first + count; ++number) {
    active_.push_back({.number = number,
                       .sequence = number == first ? begun.sequence : decoder_->fork(begun.sequence),
                       .left = left,
                       .position = reads_source ? 0 : given,
                       .seen = std::vector<std::int32_t>(prompt.begin(), prompt.end()),
                       .first_logits = begun.logits});
  }
}

std::vector<Generation::Step> Generation::step(const TokenListener& listener) {
  std::vector<std::int64_t> sequences;
  std::vector<std::int32_t> tokens;
  for (const Active& active : active_) {
    if (!active.first_logits.empty()) continue;
    sequences.push_back(active.sequence);
    tokens.push_back(active.seen.back());
  }
  const at::Tensor logits = sequences.empty() ? at::Tensor() : decoder_->step(sequences, tokens).contiguous();
  const auto vocabulary = logits.defined() ? static_cast<std::size_t>(logits.size(1)) : 0;
  std::vector<Step> steps;
  std::size_t row = 0;
  for (Active& active : active_) {
    if (active.first_logits.empty()) {
      steps.push_back(take(active, std::span(logits.data_ptr<float>() + row * vocabulary, vocabulary), listener));
      ++row;
    } else {
      const std::vector<float> first = std::exchange(active.first_logits, {});
      steps.push_back(take(active, first, listener));
    }
  }
  remove_ended();
  return steps;
}

// Draws the next token of a sample; left is 0 when it ends.
Generation::Step Generation::take(Active& active, std::span<const float> all_logits, const TokenListener& listener) {
  const auto known = static_cast<std::size_t>(options_.known_tokens);
  const std::span<const float> logits = known > 0 && known < all_logits.size() ? all_logits.first(known) : all_logits;
  const TokenDraw draw = sampler_.draw(
      logits, active.seen,
      {.sample = options_.first_sample + active.number, .position = static_cast<std::uint64_t>(active.position)});
  active.seen.push_back(draw.token);
  ++active.position;
  --active.left;
  Step step{.sample = active.number, .draw = draw};
  const bool goes_on = !listener || listener(active.number, draw, logits);
  if (draw.token == options_.end_token) {
    step.stop = StopReason::end;
  } else if (!goes_on) {
    step.stop = StopReason::stopped;
  } else if (active.left <= 0) {
    step.stop = StopReason::length;
  }
  if (step.stop) active.left = 0;
  return step;
}

void Generation::remove_ended() {
  const auto ended =
      std::stable_partition(active_.begin(), active_.end(), [](const Active& active) { return active.left > 0; });
  for (auto active = ended; active != active_.end(); ++active) decoder_->drop(active->sequence);
  active_.erase(ended, active_.end());
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
