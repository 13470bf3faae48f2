// Which token comes next? One token drawn from the logits of a model.
//
// The logits x go through these steps, in this order:
//
//   1. repetition   for every distinct id among those seen: x <- x / r if x > 0, r x otherwise (Keskar et al. 2019)
//   2. temperature  q_i proportional to exp(x_i / t); t = 0 takes the largest x and leaves out the rest
//   3. top-k        the k most likely tokens stay
//   4. top-p        of those: the fewest most likely tokens whose share of the probability is at least p
//                   (Holtzman et al. 2020)
//   5. min-p        of those: the tokens with q_i >= m max q
//
// What stays is drawn in proportion to q. Tokens that are equally likely are ordered by id, the lower one first; so k
// tokens are exactly k. The most likely token always stays. A token whose q is zero in double precision is never drawn.
//
// Each draw takes one number u from the random stream of (seed, sample, position) and gives the first token, most
// likely first, at which the running sum of probabilities exceeds u. So the tokens of a sample do not depend on which
// other samples are drawn, nor on their order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace routing {

struct SamplingOptions {
  double temperature = 1.0;         // 0 (most likely token only) or more
  std::int64_t top_k = 0;           // 0 for all
  double top_p = 0.8;               // above 0, at most 1; 1 for all
  double min_p = 0.0;               // 0 … 1; 0 for all
  double repetition_penalty = 1.0;  // 0.01 … 100; 1 for none, above 1 against repetition
  std::uint64_t seed = 1;
};

// Throws a ConfigError with the option's name, its value and what it may be.
void validate(const SamplingOptions& options);

// What singles out the random number of a draw.
struct DrawPlace {
  std::uint64_t sample = 0;    // the number of the text or image
  std::uint64_t position = 0;  // of the token in it
};

struct TokenDraw {
  std::int32_t token = 0;
  // Natural logarithm of the probability that the model gives the token: softmax of the logits as they came, without
  // any of the steps above.
  double log_probability = 0.0;
  friend bool operator==(const TokenDraw&, const TokenDraw&) = default;
};

struct TokenProbability {
  std::int32_t token = 0;
  double probability = 0.0;
};

// logits  [vocabulary], one for each id; -infinity for tokens that cannot be
// seen    the ids so far, prompt and drawn, in any order; only the repetition penalty reads them
//
// Work     proportional to the vocabulary, plus sorting what distribution() returns; sums in double
// Memory   buffers of the size of the vocabulary, kept between calls
// Threads  one Sampler per thread
// Throws   InputError  no logits; a logit that is NaN or +infinity, or all of them -infinity; an id in `seen` that is
//                      not in the vocabulary
class Sampler {
 public:
  // Throws as validate().
  explicit Sampler(const SamplingOptions& options);

  const SamplingOptions& options() const { return options_; }
  // For the draws that follow; the buffers stay. Throws as validate().
  void set_options(const SamplingOptions& options);
  TokenDraw draw(std::span<const float> logits, std::span<const std::int32_t> seen, const DrawPlace& place);
  // All that draw() can give, most likely first, with probabilities that sum to one.
  std::vector<TokenProbability> distribution(std::span<const float> logits, std::span<const std::int32_t> seen);

 private:
  struct Candidate {
    double logit = 0.0;   // after step 1
    double weight = 0.0;  // exp((logit - the largest logit) / temperature)
    std::int32_t token = 0;
  };
  struct Before;
  static double mass_of(std::span<const Candidate> candidates);
  template <class Enough>
  static std::size_t shortest_prefix(std::span<Candidate> candidates, const Enough& is_enough);

  // Leaves in kept_ what passes all steps.
  void keep(std::span<const float> logits, std::span<const std::int32_t> seen);
  void collect(std::span<const float> logits, std::span<const std::int32_t> seen);
  void keep_most_likely(std::size_t count);
  void weigh();
  bool weighs_as_model(std::size_t vocabulary) const;
  void keep_nucleus();

  SamplingOptions options_;
  // Of the last weigh(): the sum of all weights, and the logit that has weight 1.
  double mass_ = 0.0;
  double heaviest_ = 0.0;
  std::vector<Candidate> kept_;
  std::vector<Candidate> scratch_;
  std::vector<bool> is_seen_;  // by id; all false between calls
};

// The log probability of one token, as in TokenDraw. Throws InputErrors as Sampler, and for an id that has no logit.
double log_probability(std::span<const float> logits, std::int32_t token);

// The `count` most likely tokens with their log probabilities, as in TokenDraw, most likely first, lower ids first
// among equals. Fewer if fewer have a logit above -infinity. Throws InputErrors as Sampler, and for a negative count.
std::vector<TokenDraw> most_likely(std::span<const float> logits, std::int64_t count);

}  // namespace routing
