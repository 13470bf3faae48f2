// A decoder that fails when it is told to, and otherwise does what another one does.
#pragma once

#include "routing/generation/decoder.h"

#include <memory>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace routing {

class FaultyDecoder : public Decoder {
 public:
  explicit FaultyDecoder(std::unique_ptr<Decoder> real) : real_(std::move(real)) {}

  // Whatever reads this token throws, in a step after all sequences have read theirs: half of its work is done.
  void poison(std::int32_t token) { poison_ = token; }
  // The next so many steps throw although nobody's tokens are at fault.
  void fail_steps(int count) { failing_steps_ = count; }
  // Likewise of reading pieces of several prompts at once.
  void fail_readings(int count) { failing_readings_ = count; }
  std::int64_t sequences() const { return static_cast<std::int64_t>(live_.size()); }
  std::int64_t tokens_read() const { return tokens_read_; }
  // Sequences of each step so far.
  const std::vector<std::size_t>& steps() const { return steps_; }

  using Decoder::begin;
  Begun begin(std::span<const std::int32_t> prompt, const Expected& expected) override {
    read(prompt);
    Begun begun = real_->begin(prompt, expected);
    live_.insert(begun.sequence);
    return begun;
  }
  std::int64_t open(const Expected& expected) override { return *live_.insert(real_->open(expected)).first; }
  std::vector<float> extend(std::int64_t sequence, std::span<const std::int32_t> tokens) override {
    std::vector<float> logits = real_->extend(sequence, tokens);
    read(tokens);
    return logits;
  }
  std::vector<Extended> extend_each(std::span<const More> pieces) override {
    std::vector<Extended> all = Decoder::extend_each(pieces);
    if (failing_readings_ > 0) {
      --failing_readings_;
      throw std::bad_alloc();
    }
    return all;
  }
  at::Tensor step(std::span<const std::int64_t> sequences, std::span<const std::int32_t> tokens) override {
    steps_.push_back(sequences.size());
    at::Tensor logits = real_->step(sequences, tokens);
    read(tokens);
    if (failing_steps_ > 0) {
      --failing_steps_;
      throw std::bad_alloc();
    }
    return logits;
  }
  std::int64_t fork(std::int64_t sequence) override { return *live_.insert(real_->fork(sequence)).first; }
  std::int64_t fork(std::int64_t sequence, const Expected& expected) override {
    return *live_.insert(real_->fork(sequence, expected)).first;
  }
  void drop(std::int64_t sequence) override {
    real_->drop(sequence);
    live_.erase(sequence);
  }
  bool has_room(const Expected& expected) const override { return real_->has_room(expected); }
  bool has_room(std::int64_t fork_of, const Expected& expected) const override {
    return real_->has_room(fork_of, expected);
  }
  void check_prompt(std::span<const std::int32_t> prompt) const override { real_->check_prompt(prompt); }
  std::int64_t keep(std::int64_t sequence) override { return *live_.insert(real_->keep(sequence)).first; }
  std::int64_t kept_bytes() const override { return real_->kept_bytes(); }
  std::int64_t bytes_of(std::int64_t sequence) const override { return real_->bytes_of(sequence); }
  bool reads_source() const override { return real_->reads_source(); }
  std::int64_t prompt_block() const override { return real_->prompt_block(); }
  std::int64_t vocabulary_size() const override { return real_->vocabulary_size(); }
  std::int64_t longest_sequence() const override { return real_->longest_sequence(); }
  std::string label() const override { return real_->label(); }
  std::string reason() const override { return real_->reason(); }
  std::int64_t cache_bytes() const override { return real_->cache_bytes(); }

 private:
  void read(std::span<const std::int32_t> tokens) {
    tokens_read_ += static_cast<std::int64_t>(tokens.size());
    for (const std::int32_t token : tokens) {
      if (token == poison_) throw std::runtime_error("the poison was read");
    }
  }

  std::unique_ptr<Decoder> real_;
  std::set<std::int64_t> live_;
  std::int32_t poison_ = -1;
  int failing_steps_ = 0;
  int failing_readings_ = 0;
  std::int64_t tokens_read_ = 0;
  std::vector<std::size_t> steps_;
};

}  // namespace routing
