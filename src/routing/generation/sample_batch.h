// Samples that are decoded side by side, one token of each at a time, each with options of its own: the one place where
// tokens are drawn and samples end, for generate() and for batches of completions alike.
//
// The draw of a token is a function of the logits, the seed, the number of the sample and the position, and the logits
// do not depend on the other sequences of a step (decoder.h). So no sample depends on which others there are.
#pragma once

#include "routing/config/words.h"
#include "routing/generation/decoder.h"
#include "routing/generation/sampler.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace routing {

enum class StopReason {
  length,   // max_new_tokens, or the end of what the model can read
  end,      // the end token
  stopped,  // the listener said so
};
constexpr auto words_of(StopReason) {
  using enum StopReason;
  return std::to_array<Word<StopReason>>({{length, "length"}, {end, "end"}, {stopped, "stopped"}});
}

// How the tokens of a sample are drawn, and when it ends.
struct SampleOptions {
  SamplingOptions sampling = {};
  std::int64_t max_new_tokens = 256;  // fewer where sequences of the model end before
  std::int64_t end_token = -1;        // a sample ends after this token; -1 for none
  std::int64_t known_tokens = 0;      // only ids below this one are drawn: those that have a text; 0 means all
};
// Throws a ConfigError with the option's name, its value and what it may be.
void validate(const SampleOptions& options);
// What can be drawn behind a prompt of so many tokens.
std::int64_t most_new_tokens(const Decoder& decoder, std::int64_t prompt_tokens, std::int64_t max_new_tokens);

// Which sample it is: those of a request count from 0.
struct SampleName {
  std::uint64_t request = 0;
  std::size_t sample = 0;
};

// What hears of a step, sample after sample.
class SampleListener {
 public:
  SampleListener() = default;
  virtual ~SampleListener() = default;
  SampleListener(const SampleListener&) = delete;
  SampleListener& operator=(const SampleListener&) = delete;

  // A new token, and the logits that it was drawn from. False ends the sample; the token still counts.
  virtual bool drawn(const SampleName& name, const TokenDraw& draw, std::span<const float> logits) = 0;
  // What drawn() heard last was the sample's last token. Its sequence is gone.
  virtual void ended(const SampleName& name, StopReason reason) = 0;
  // The sample cannot go on, for instance because its logits are not numbers. Its sequence is gone.
  virtual void failed(const SampleName& name, std::exception_ptr error) = 0;
};

class SampleBatch {
 public:
  // The decoder must outlive it.
  explicit SampleBatch(Decoder& decoder) : decoder_(&decoder) {}
  ~SampleBatch();
  SampleBatch(const SampleBatch&) = delete;
  SampleBatch& operator=(const SampleBatch&) = delete;

  // A sample that goes on from a prompt, with a sequence that has read it, which belongs to the batch from now on, and
  // the logits behind it. The number names its random stream.
  struct Beginning {
    SampleName name = {};
    std::uint64_t stream = 0;
    std::int64_t sequence = 0;
    std::span<const std::int32_t> prompt = {};
    std::shared_ptr<const std::vector<float>> logits = {};
  };
  void add(const Beginning& beginning, const SampleOptions& options);
  // All samples of a request, at once. A listener may do it too.
  void remove(std::uint64_t request);
  std::size_t size() const { return active_.size(); }

  // The next token of every sample, in the order in which they were added. What the decoder throws goes on to the
  // caller; read_again() must follow before the next step. What a listener throws does too; the batch is good for
  // nothing then but to be destroyed.
  void step(SampleListener& listener);
  // After a decoder has thrown: reads all sequences anew, one after the other, so that samples that cannot be read fail
  // and the others go on as if nothing had been.
  void read_again(SampleListener& listener);

 private:
  struct Active {
    SampleName name = {};
    std::uint64_t stream = 0;
    SampleOptions options = {};
    std::int64_t sequence = -1;  // -1 while it has none
    bool gone = false;           // it has ended, failed or was removed
    std::int64_t left = 0;       // tokens it may still get
    std::int64_t position = 0;   // of the next token
    std::size_t prompt_tokens = 0;
    std::vector<std::int32_t> seen = {};                    // prompt and drawn
    std::shared_ptr<const std::vector<float>> logits = {};  // of the next token, where they are known already
  };
  struct Draw {
    std::span<const float> logits = {};
    TokenDraw token = {};
    std::exception_ptr error = {};
  };
  void drop(Active& active);
  void let_go(Active& active);
  void read_anew(Active& active);
  at::Tensor next_logits();
  void draw_tokens(const at::Tensor& logits);
  void take(Active& active, const Draw& draw, SampleListener& listener);
  void forget_gone();

  Decoder* decoder_;
  std::vector<Active> active_;
  std::vector<Draw> draws_;        // of the step that goes on
  std::vector<Sampler> samplers_;  // for threads, kept for their memory
  bool stepping_ = false;
};

}  // namespace routing
