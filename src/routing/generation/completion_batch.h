// Many completions in one batch, which requests join and leave at any step: for a server, or whoever has more to ask
// than one prompt.
//
// A request's tokens, log probabilities and stop reasons are those that generate() gives it alone, bit for bit, whoever
// else is there, when they come and go, and whatever was read before:
//
//   logits of a sequence do not depend on the others of a step, nor on the pieces in which its prompt was read
//   (decoder.h) the draw of a token is a function of seed, sample and position (sampler.h)
//
// advance() does one round: requests that wait are let in, in the order in which they came; prompts are read, a block
// of tokens in all, so that nobody waits for a whole long prompt; and every sample that has its prompt gets one token.
//
//   places   a request of n samples takes n of `sequences` from the time it is let in, until each of its samples ends
//   memory   a request is let in once the decoder has room for it (Decoder::has_room); for that, what the prefix cache
//            keeps is let go, the longest unused first
//   order    first come, first let in: nobody overtakes, so nobody starves. Prompts are read in turns, a block each
//
// Prompts that begin alike are read once (prefix_cache.h).
//
// Threads    one caller at a time; listeners are called on the caller's thread, from within advance(), and may call
// add()
//            and cancel(), but not advance()
#pragma once

#include "routing/generation/decoder.h"
#include "routing/generation/prefix_cache.h"
#include "routing/generation/sample_batch.h"
#include "routing/generation/sampler.h"

#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace routing {

struct CompletionRequest {
  std::vector<std::int32_t> prompt = {};  // of an encoder-decoder: the source
  SamplingOptions sampling = {};
  std::int64_t max_new_tokens = 256;  // of each sample; fewer where sequences of the model end before
  std::int64_t samples = 1;
  std::int64_t end_token = -1;     // a sample ends after this token; -1 for none
  std::int64_t known_tokens = 0;   // only ids below this one are drawn: those that have a text; 0 means all
  std::uint64_t first_sample = 0;  // the number of the first sample, which names its random stream
};

// What hears of a request. Samples count from 0. After failed(), after the last ended() and after a cancel() nothing is
// called any more. What a listener throws ends its request, and is thrown again by advance() once the round is done.
class CompletionListener {
 public:
  CompletionListener() = default;
  virtual ~CompletionListener() = default;
  CompletionListener(const CompletionListener&) = delete;
  CompletionListener& operator=(const CompletionListener&) = delete;

  struct Prompt {
    std::int64_t tokens = 0;         // of the prompt
    std::int64_t read = 0;           // so far; all of them before the first token() is called
    std::int64_t cached_tokens = 0;  // of these, those that the prefix cache had
  };
  // After every block of the prompt, and at least once before the first token.
  virtual void prompt_read(const Prompt& /*prompt*/) {}
  // A new token of a sample, and the logits that it was drawn from (those of known_tokens only). False ends the sample;
  // the token still counts.
  virtual bool token(std::size_t sample, const TokenDraw& draw, std::span<const float> logits) = 0;
  virtual void ended(std::size_t /*sample*/, StopReason /*reason*/) {}
  // The whole request ends without a result.
  virtual void failed(const std::string& /*reason*/) {}
};

struct BatchLimits {
  std::int64_t sequences = 64;       // decoded at once
  std::int64_t prefill_block = 512;  // tokens of prompts read in a round; no bit depends on it
  PrefixCacheLimits prefix_cache = {};
};

class CompletionBatch {
 public:
  // The decoder must outlive it, and have no other user that expects memory. Throws a ConfigError for impossible
  // limits.
  explicit CompletionBatch(Decoder& decoder, const BatchLimits& limits = {});
  ~CompletionBatch();
  CompletionBatch(const CompletionBatch&) = delete;
  CompletionBatch& operator=(const CompletionBatch&) = delete;

  // It waits in line from now on; returns the request's number, which is used once. The listener hears of it until it
  // ends.
  //
  // Throws  ConfigError  options out of range
  //         InputError   what can never be done: ids outside the vocabulary, a prompt as long as a sequence of the
  //         model,
  //                      more samples than `sequences`, or more memory than the decoder has if it were alone
  std::uint64_t add(CompletionRequest request, std::shared_ptr<CompletionListener> listener);
  // Its sequences are gone when this returns, also when its prompt is half read. A number that has ended means nothing.
  void cancel(std::uint64_t request);
  // One round; false if there was nothing to do. Of a decoder that throws, only the requests that cannot go on fail:
  // they hear failed(), the others lose nothing.
  bool advance();

  struct Facts {
    // Now.
    std::int64_t waiting = 0;  // requests that were not let in yet
    std::int64_t reading = 0;  // requests whose prompts are being read
    std::int64_t active = 0;   // samples that get a token in each round
    std::int64_t places = 0;   // taken, of limits().sequences
    // Since the beginning.
    std::int64_t requests = 0, finished = 0, failed = 0, cancelled = 0;
    std::int64_t prompt_tokens_read = 0;  // not those that the prefix cache had
    std::int64_t tokens_drawn = 0;
    std::int64_t rounds = 0;
    PrefixCache::Facts prefixes = {};
  };
  Facts facts() const;
  const BatchLimits& limits() const { return limits_; }

 private:
  struct Request {
    CompletionRequest asked = {};
    std::shared_ptr<CompletionListener> listener = {};
    std::int64_t left = 0;     // tokens that each sample may get
    std::int64_t unended = 0;  // samples
    bool is_in = false;        // it has its places
    // While its prompt is read.
    std::int64_t sequence = -1;
    std::int64_t read = 0, cached_tokens = 0;
    std::shared_ptr<const std::vector<float>> logits = {};
    std::vector<std::int64_t> places = {};  // lengths at which snapshots are taken
    // Another request is reading what this one begins with, up to here.
    std::uint64_t follows = 0;
    std::int64_t follows_to = 0;
  };
  using Requests = std::map<std::uint64_t, std::shared_ptr<Request>>;
  class Heard;

  std::shared_ptr<Request> find(std::uint64_t number) const;
  static Decoder::Expected expected_of(const Request& request, std::int64_t known);
  void let_in();
  bool follows_another(Request& request, const PrefixCache::Found& found);
  bool has_room(const Request& request, const PrefixCache::Found& found) const;
  void begin(std::uint64_t number, Request& request, const PrefixCache::Found& found);
  void read_prompts();
  void read_pieces();
  void prompt_was_read(std::uint64_t number, Request& request, std::int64_t tokens);
  void begin_samples(std::uint64_t number, Request& request);
  void draw();
  void fail(std::uint64_t number, const std::string& reason);
  void forget(std::uint64_t number);
  template <class Call>
  void tell(std::uint64_t number, const std::shared_ptr<CompletionListener>& listener, const Call& call);

  Decoder* decoder_;
  BatchLimits limits_;
  PrefixCache prefixes_;
  SampleBatch samples_;
  Requests requests_;
  std::deque<std::uint64_t> waiting_;  // in the order in which they came
  std::deque<std::uint64_t> reading_;  // the next one to read first
  std::int64_t places_ = 0;            // taken
  std::int64_t budget_ = 0;            // tokens of prompts that this round may still read
  std::uint64_t next_ = 1;
  Facts counts_ = {};
  std::exception_ptr thrown_ = {};  // by a listener in this round
};

}  // namespace routing
