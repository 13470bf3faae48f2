#include "routing/generation/generate.h"

#include "routing/core/error.h"

#include <algorithm>

namespace routing {
namespace {

// A sample that still goes on.
struct Active {
  std::size_t number = 0;
  std::int64_t sequence = 0;
  std::int64_t left = 0;                 // tokens it may still get
  std::int64_t position = 0;             // of the next token
  std::vector<std::int32_t> seen = {};   // prompt and drawn, for the repetition penalty
  std::vector<float> first_logits = {};  // after the prompt, until they are used
};

class Generation {
 public:
  Generation(Decoder& decoder, const GenerateOptions& options, const TokenListener& listener,
             std::vector<Sample>& samples)
      : decoder_(decoder), options_(options), listener_(listener), samples_(samples), sampler_(options.sampling) {}
  ~Generation() {
    for (const Active& active : active_) decoder_.drop(active.sequence);
  }
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  void begin(std::span<const std::int32_t> prompt, std::size_t first, std::size_t count) {
    const std::int64_t longest = decoder_.longest_sequence();
    const auto given = static_cast<std::int64_t>(prompt.size());
    const std::int64_t room = longest == 0 ? options_.max_new_tokens : longest - (reads_source() ? 0 : given);
    const std::int64_t left = std::min(options_.max_new_tokens, room);
    const auto forks = static_cast<std::int64_t>(count) - 1;
    const Decoder::Begun begun = decoder_.begin(prompt, {.new_tokens = left * (forks + 1), .forks = forks});
    active_.reserve(active_.size() + count);
    for (std::size_t number = first; number < first + count; ++number) {
      active_.push_back({.number = number,
                         .sequence = number == first ? begun.sequence : decoder_.fork(begun.sequence),
                         .left = left,
                         .position = reads_source() ? 0 : given,
                         .seen = std::vector<std::int32_t>(prompt.begin(), prompt.end()),
                         .first_logits = begun.logits});
    }
  }

  void run() {
    for (Active& active : active_) take(active, active.first_logits);
    remove_ended();
    while (!active_.empty()) {
      std::vector<std::int64_t> sequences;
      std::vector<std::int32_t> tokens;
      for (const Active& active : active_) {
        sequences.push_back(active.sequence);
        tokens.push_back(active.seen.back());
      }
      const at::Tensor logits = decoder_.step(sequences, tokens).contiguous();
      const auto vocabulary = static_cast<std::size_t>(logits.size(1));
      for (std::size_t row = 0; row < active_.size(); ++row) {
        take(active_[row], std::span(logits.data_ptr<float>() + row * vocabulary, vocabulary));
      }
      remove_ended();
    }
  }

 private:
  bool reads_source() const { return decoder_.reads_source(); }

  // Draws the next token of a sample; left is 0 when it ends.
  void take(Active& active, std::span<const float> all_logits) {
    Sample& sample = samples_[active.number];
    const auto known = static_cast<std::size_t>(options_.known_tokens);
    const std::span<const float> logits = known > 0 && known < all_logits.size() ? all_logits.first(known) : all_logits;
    const TokenDraw draw = sampler_.draw(
        logits, active.seen,
        {.sample = options_.first_sample + active.number, .position = static_cast<std::uint64_t>(active.position)});
    sample.tokens.push_back(draw.token);
    sample.log_probabilities.push_back(draw.log_probability);
    active.seen.push_back(draw.token);
    ++active.position;
    --active.left;
    const bool goes_on = !listener_ || listener_(active.number, draw, logits);
    if (draw.token == options_.end_token) {
      sample.stop = StopReason::end;
      active.left = 0;
    } else if (!goes_on) {
      sample.stop = StopReason::stopped;
      active.left = 0;
    }
  }

  void remove_ended() {
    const auto ended =
        std::stable_partition(active_.begin(), active_.end(), [](const Active& active) { return active.left > 0; });
    for (auto active = ended; active != active_.end(); ++active) decoder_.drop(active->sequence);
    active_.erase(ended, active_.end());
  }

  // NOLINTBEGIN(cppcoreguidelines-avoid-const-or-ref-data-members): lives for one call
  Decoder& decoder_;
  const GenerateOptions& options_;
  const TokenListener& listener_;
  std::vector<Sample>& samples_;
  // NOLINTEND(cppcoreguidelines-avoid-const-or-ref-data-members)
  Sampler sampler_;
  std::vector<Active> active_;
};

}  // namespace

std::vector<Sample> generate(Decoder& decoder, std::span<const std::vector<std::int32_t>> prompts,
                             const GenerateOptions& options, const TokenListener& listener) {
  require<ConfigError>(options.max_new_tokens >= 1, "generate: max_new_tokens is ", options.max_new_tokens,
                       ", but must be at least 1");
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
    Generation generation(decoder, options, listener, samples);
    for (std::size_t number = first; number < last;) {
      const std::size_t end = std::min(last, (number / each + 1) * each);
      generation.begin(prompts[number / each], number, end - number);
      number = end;
    }
    generation.run();
  }
  return samples;
}

}  // namespace routing
