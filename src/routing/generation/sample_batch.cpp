#include "routing/generation/sample_batch.h"

#include "routing/core/error.h"
#include "routing/core/parallel.h"

#include <algorithm>
#include <utility>

namespace routing {
namespace {

// True while it lives.
class Flag {
 public:
  explicit Flag(bool& flag) : flag_(&flag) { *flag_ = true; }
  ~Flag() { *flag_ = false; }
  Flag(const Flag&) = delete;
  Flag& operator=(const Flag&) = delete;

 private:
  bool* flag_;
};

}  // namespace

void validate(const SampleOptions& options) {
  require<ConfigError>(options.max_new_tokens >= 1, "generate: max_new_tokens is ", options.max_new_tokens,
                       ", but must be at least 1");
  validate(options.sampling);
}

std::int64_t most_new_tokens(const Decoder& decoder, std::int64_t prompt_tokens, std::int64_t max_new_tokens) {
  const std::int64_t longest = decoder.longest_sequence();
  if (longest == 0) return max_new_tokens;
  return std::min(max_new_tokens, longest - (decoder.reads_source() ? 0 : prompt_tokens));
}

SampleBatch::~SampleBatch() {
  for (Active& active : active_) drop(active);
}

void SampleBatch::drop(Active& active) {
  if (active.sequence >= 0) decoder_->drop(std::exchange(active.sequence, -1));
}

void SampleBatch::let_go(Active& active) {
  active.gone = true;
  drop(active);
}

void SampleBatch::add(const Beginning& beginning, const SampleOptions& options) {
  const auto given = static_cast<std::int64_t>(beginning.prompt.size());
  active_.push_back({.name = beginning.name,
                     .stream = beginning.stream,
                     .options = options,
                     .sequence = beginning.sequence,
                     .left = most_new_tokens(*decoder_, given, options.max_new_tokens),
                     .position = decoder_->reads_source() ? 0 : given,
                     .prompt_tokens = beginning.prompt.size(),
                     .seen = std::vector<std::int32_t>(beginning.prompt.begin(), beginning.prompt.end()),
                     .logits = beginning.logits});
}

void SampleBatch::remove(std::uint64_t request) {
  for (Active& active : active_) {
    if (active.name.request == request) let_go(active);
  }
  if (!stepping_) forget_gone();
}

void SampleBatch::forget_gone() {
  std::erase_if(active_, [](const Active& active) { return active.gone; });
}

// One row for each sample whose logits are not known yet.
at::Tensor SampleBatch::next_logits() {
  std::vector<std::int64_t> sequences;
  std::vector<std::int32_t> tokens;
  for (const Active& active : active_) {
    if (active.logits) continue;
    sequences.push_back(active.sequence);
    tokens.push_back(active.seen.back());
  }
  return sequences.empty() ? at::Tensor() : decoder_->step(sequences, tokens).contiguous();
}

// Draws do not touch each other, so threads share them.
void SampleBatch::draw_tokens(const at::Tensor& logits) {
  const auto vocabulary = logits.defined() ? static_cast<std::size_t>(logits.size(1)) : 0;
  const float* row = logits.defined() ? logits.data_ptr<float>() : nullptr;
  draws_.assign(active_.size(), {});
  for (std::size_t index = 0; index < active_.size(); ++index) {
    const Active& active = active_[index];
    std::span<const float> all = active.logits ? std::span(*active.logits) : std::span(row, vocabulary);
    if (!active.logits) row += vocabulary;
    const auto known = static_cast<std::size_t>(active.options.known_tokens);
    draws_[index].logits = known > 0 && known < all.size() ? all.first(known) : all;
  }
  const auto count = static_cast<std::int64_t>(active_.size());
  const std::int64_t chunks = std::min<std::int64_t>(count, 2 * num_threads());
  const std::int64_t grain = (count + chunks - 1) / chunks;
  samplers_.resize(static_cast<std::size_t>(chunks), Sampler(SamplingOptions{}));
  parallel_for(0, count, grain, [&](std::int64_t first, std::int64_t last) {
    Sampler& sampler = samplers_[static_cast<std::size_t>(first / grain)];
    for (auto index = static_cast<std::size_t>(first); index < static_cast<std::size_t>(last); ++index) {
      const Active& active = active_[index];
      Draw& draw = draws_[index];
      try {
        sampler.set_options(active.options.sampling);
        draw.token = sampler.draw(draw.logits, active.seen,
                                  {.sample = active.stream, .position = static_cast<std::uint64_t>(active.position)});
      } catch (...) {
        draw.error = std::current_exception();
      }
    }
  });
}

void SampleBatch::take(Active& active, const Draw& draw, SampleListener& listener) {
  const SampleName name = active.name;
  if (draw.error) {
    let_go(active);
    listener.failed(name, draw.error);
    return;
  }
  active.seen.push_back(draw.token.token);
  ++active.position;
  --active.left;
  const bool goes_on = listener.drawn(name, draw.token, draw.logits);
  if (active.gone) return;  // the listener has removed it
  std::optional<StopReason> stop;
  if (draw.token.token == active.options.end_token) {
    stop = StopReason::end;
  } else if (!goes_on) {
    stop = StopReason::stopped;
  } else if (active.left <= 0) {
    stop = StopReason::length;
  }
  if (!stop) return;
  let_go(active);
  listener.ended(name, *stop);
}

void SampleBatch::step(SampleListener& listener) {
  if (active_.empty()) return;
  const at::Tensor logits = next_logits();
  draw_tokens(logits);
  {
    const Flag stepping(stepping_);
    for (std::size_t index = 0; index < active_.size(); ++index) {
      // What the listener hears may be the last that holds these.
      const std::shared_ptr<const std::vector<float>> held = std::exchange(active_[index].logits, nullptr);
      if (!active_[index].gone) take(active_[index], draws_[index], listener);
    }
  }
  forget_gone();
}

// The prompt and what was drawn behind it, as one.
void SampleBatch::read_anew(Active& active) {
  const std::span<const std::int32_t> seen = active.seen;
  const Decoder::Expected expected{.new_tokens = active.left};
  const bool reads_source = decoder_->reads_source();
  Decoder::Begun begun = decoder_->begin(reads_source ? seen.first(active.prompt_tokens) : seen, expected);
  active.sequence = begun.sequence;
  if (reads_source) begun.logits = decoder_->extend(begun.sequence, seen.subspan(active.prompt_tokens));
  active.logits = std::make_shared<const std::vector<float>>(std::move(begun.logits));
}

void SampleBatch::read_again(SampleListener& listener) {
  for (Active& active : active_) {
    if (!active.logits) drop(active);
  }
  {
    const Flag stepping(stepping_);
    for (Active& active : active_) {
      if (active.logits || active.gone) continue;
      try {
        read_anew(active);
      } catch (...) {
        let_go(active);
        listener.failed(active.name, std::current_exception());
      }
    }
  }
  forget_gone();
}

}  // namespace routing
