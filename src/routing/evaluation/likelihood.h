// Likelihoods as numbers: sums of nats, and the units they are reported in.
//
// A token that the model gave probability p costs -ln p nats.
#pragma once

#include <cstdint>
#include <span>

namespace routing {

// A window and what its tokens cost.
struct ScoredWindow {
  std::span<const std::int64_t> tokens = {};
  std::span<const float> nats = {};  // of every token; those before scored_from are context and do not count
  std::int64_t scored_from = 0;
  std::span<const std::int64_t> source = {};  // what an encoder has read; empty without one
};

// nats / ln 2.
double bits(double nats);

// Of a text that cost so many nats altogether and has so many bytes; an InputError without bytes.
double bits_per_byte(double total_nats, std::int64_t bytes);

// The sum of the nats of many tokens. They are added one after the other with the rounding errors carried along
// (Neumaier's sum), so that a billion tokens add up as well as ten; in the same order they give the same bits.
class NatsSum {
 public:
  void add(double nats);

  double total() const;
  std::int64_t tokens() const { return tokens_; }
  // Nats per token; an InputError without tokens.
  double mean() const;

 private:
  double sum_ = 0.0;
  double lost_ = 0.0;  // what rounding took from the sum
  std::int64_t tokens_ = 0;
};

}  // namespace routing
