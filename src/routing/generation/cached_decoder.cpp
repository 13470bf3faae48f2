#include "routing/core/error.h"
#include "routing/core/memory.h"
#include "routing/core/parallel.h"
#include "routing/data/batches.h"
#include "routing/generation/model_decoder.h"
#include "routing/ops/dense/packed_weights.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

namespace routing {
namespace {

// Memory that a sequence and its forks may still take.
class Promise {
 public:
  Promise(double bytes, double& total) : bytes_(bytes), total_(&total) { *total_ += bytes_; }
  ~Promise() { take(bytes_); }
  Promise(const Promise&) = delete;
  Promise& operator=(const Promise&) = delete;
  // They have taken it. Whoever takes more than was expected has no promise for the rest.
  void take(double bytes) {
    const double taken = std::min(bytes, bytes_);
    bytes_ -= taken;
    *total_ -= taken;
  }

 private:
  double bytes_;
  double* total_;
};

double bytes_of_tokens(std::int64_t tokens, std::int64_t each) {
  return static_cast<double>(tokens) * static_cast<double>(each);
}

class CachedDecoder : public ModelDecoder {
 public:
  CachedDecoder(const std::shared_ptr<SequenceModel>& sequence_model, DecoderOptions options)
      : ModelDecoder(sequence_model, std::move(options)),
        cache_(model().make_cache(this->options().precision)),
        memory_(this->options().memory_limit > 0 ? this->options().memory_limit : available_memory()) {
    // Weights that are not kept packed would be packed again for every token. Packed ones are filled up to whole
    // blocks, which multiplies the size of small matrices.
    constexpr std::size_t kRoomForBlocks = std::size_t{64} << 20U;
    const std::size_t needed =
        static_cast<std::size_t>(sequence_model->num_parameters()) * sizeof(float) * 5 / 4 + kRoomForBlocks;
    if (packed_weights_limit() < needed) set_packed_weights_limit(needed);
  }

  using Decoder::begin;
  Begun begin(std::span<const std::int32_t> prompt, const Expected& expected) override {
    check_prompt(prompt);
    const auto given = static_cast<std::int64_t>(prompt.size());
    Expected all = expected;
    all.prompt_tokens += given;
    const std::int64_t sequence = add_sequence(source_of(prompt), all);
    try {
      std::vector<float> logits = options().pieces != nullptr
                                      ? read_piece(sequence, from_start(prompt), *options().pieces)
                                      : read(sequence, from_start(beginning_of(prompt)), options().progress);
      promises_.at(sequence)->take(bytes_of_prompt(given));
      return {sequence, std::move(logits)};
    } catch (...) {
      drop(sequence);
      throw;
    }
  }

  std::int64_t open(const Expected& expected) override {
    check_open();
    return add_sequence({}, expected);
  }

  std::vector<float> extend(std::int64_t sequence, std::span<const std::int32_t> tokens) override {
    take_memory(sequence, tokens);
    return read_on(sequence, tokens);
  }

  std::vector<Extended> extend_each(std::span<const More> pieces) override {
    const auto count = static_cast<std::int64_t>(pieces.size());
    if (cache_.sequences_of_part(count, options().precision, 1) >= count) return Decoder::extend_each(pieces);
    std::vector<Extended> all(pieces.size());
    std::vector<std::int64_t> sequences;
    std::size_t longest = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      try {
        take_memory(pieces[i].sequence, pieces[i].tokens);
        sequences.push_back(pieces[i].sequence);
        longest = std::max(longest, pieces[i].tokens.size());
      } catch (...) {
        all[i].error = std::current_exception();
      }
    }
    const auto read_one = [&](std::size_t i) {
      if (all[i].error) return;
      try {
        all[i].logits = read_on(pieces[i].sequence, pieces[i].tokens);
      } catch (...) {
        all[i].error = std::current_exception();
      }
    };
    std::optional<ModelCache::Parts> parts;
    try {
      // A new one reads its start as well.
      parts.emplace(cache_, sequences, static_cast<std::int64_t>(longest) + 1);
    } catch (...) {
      // There is no memory for all of them at once; one after the other each fails by itself, or does not.
      for (std::size_t i = 0; i < pieces.size(); ++i) read_one(i);
      return all;
    }
    parallel_for(0, count, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) read_one(static_cast<std::size_t>(i));
    });
    return all;
  }

  at::Tensor step(std::span<const std::int64_t> sequences, std::span<const std::int32_t> tokens) override {
    const auto count = static_cast<std::int64_t>(sequences.size());
    check_step(sequences, tokens);
    for (std::size_t i = 0; i < tokens.size(); ++i) check_tokens(tokens.subspan(i, 1), tokens_of(sequences[i]));
    const auto each = static_cast<double>(cache_.bytes_per_token());
    for (const std::int64_t sequence : sequences) promises_.at(sequence)->take(each);
    return logits(token_tensor(tokens, {count, 1}), sequences).view({count, vocabulary_size()});
  }

  std::int64_t fork(std::int64_t sequence) override {
    const std::int64_t made = cache_.fork_sequence(sequence);
    promises_[made] = promises_.at(sequence);
    promises_[made]->take(bytes_of_tokens(cache_.length(made), cache_.bytes_per_forked_token()));
    return made;
  }
  std::int64_t fork(std::int64_t sequence, const Expected& expected) override {
    std::shared_ptr<Promise> promise = promised(need_of_fork(sequence, expected));
    const std::int64_t made = cache_.fork_sequence(sequence);
    cache_.reserve(expected.prompt_tokens + expected.new_tokens);
    promise->take(bytes_of_tokens(cache_.length(made), cache_.bytes_per_forked_token()));
    promises_[made] = std::move(promise);
    return made;
  }
  std::int64_t keep(std::int64_t sequence) override {
    const std::int64_t made = fork(sequence, {});
    cache_.keep_sequence(made);
    return made;
  }
  void drop(std::int64_t sequence) override {
    cache_.drop_sequence(sequence);
    promises_.erase(sequence);
  }

  bool has_room(const Expected& expected) const override { return has_room(need_of(expected)); }
  bool has_room(std::int64_t fork_of, const Expected& expected) const override {
    return has_room(need_of_fork(fork_of, expected));
  }

  std::int64_t prompt_block() const override { return reads_source() ? 0 : options().prefill_block; }
  std::string label() const override { return "cached"; }
  std::string reason() const override { return {}; }
  std::int64_t cache_bytes() const override { return cache_.bytes(); }
  std::int64_t kept_bytes() const override { return cache_.kept_bytes(); }
  std::int64_t bytes_of(std::int64_t sequence) const override { return cache_.bytes_of(sequence); }

 private:
  // What a sequence needs for good, that is, in heads without a window; in double, because what is asked for may be
  // beyond all numbers.
  struct Need {
    double bytes = 0.0;
    std::int64_t prompt = 0, new_tokens = 0;
  };

  std::int64_t tokens_of(std::int64_t sequence) const { return cache_.length(sequence) - 1; }

  std::int64_t add_sequence(const at::Tensor& source, const Expected& expected) {
    std::shared_ptr<Promise> promise = promised(need_of(expected));
    const std::int64_t sequence = model().begin_sequence(cache_, source, forward_context());
    promises_[sequence] = std::move(promise);
    cache_.reserve((reads_source() ? 0 : expected.prompt_tokens + 1) + expected.new_tokens);
    return sequence;
  }

  // Position 0 reads the start and predicts the first token, so n tokens are n + 1 positions.
  static std::vector<std::int32_t> from_start(std::span<const std::int32_t> tokens) {
    std::vector<std::int32_t> previous(tokens.size() + 1, 0);
    std::copy(tokens.begin(), tokens.end(), previous.begin() + 1);
    return previous;
  }

  void take_memory(std::int64_t sequence, std::span<const std::int32_t> tokens) {
    check_more(tokens, tokens_of(sequence));
    promises_.at(sequence)->take(bytes_of_tokens(static_cast<std::int64_t>(tokens.size()), cache_.bytes_per_token()));
  }
  std::vector<float> read_on(std::int64_t sequence, std::span<const std::int32_t> tokens) {
    return tokens_of(sequence) < 0 ? read(sequence, from_start(tokens), {}) : read(sequence, tokens, {});
  }

  at::Tensor logits(const at::Tensor& previous, std::span<const std::int64_t> sequences) {
    const CachedContext context{.precision = options().precision, .last_only = true};
    return model().logits_cached(previous, cache_, sequences, context);
  }

  std::vector<float> read(std::int64_t sequence, std::span<const std::int32_t> previous,
                          const std::function<void(std::int64_t, std::int64_t)>& progress) {
    const std::vector<std::int64_t> sequences{sequence};
    const auto total = static_cast<std::int64_t>(previous.size());
    at::Tensor last;
    for (std::int64_t first = 0; first < total; first += options().prefill_block) {
      const std::int64_t count = std::min(options().prefill_block, total - first);
      const auto block = previous.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
      last = logits(token_tensor(block, {1, count}), sequences);
      if (progress) progress(first + count, total);
    }
    return numbers_of(last);
  }

  std::vector<float> read_piece(std::int64_t sequence, std::span<const std::int32_t> previous, PieceExchange& pieces) {
    const auto all = static_cast<std::int64_t>(previous.size());
    require<InputError>(all >= pieces.pieces(), "a prompt of ", all - 1, " tokens for ", pieces.pieces(),
                        " ranks; give a longer one, or start fewer ranks");
    const RowRange own = rows_of_rank(all, pieces.piece(), pieces.pieces());
    cache_.begin_at(sequence, own.first);
    const auto piece = previous.subspan(static_cast<std::size_t>(own.first), static_cast<std::size_t>(own.count));
    const at::Tensor last =
        model().logits_cached(token_tensor(piece, {1, own.count}), cache_, std::vector<std::int64_t>{sequence},
                              {.precision = options().precision, .last_only = true, .pieces = &pieces});
    return pieces.piece() + 1 == pieces.pieces() ? numbers_of(last) : std::vector<float>();
  }

  double bytes_of_prompt(std::int64_t tokens) const {
    return bytes_of_tokens(tokens, reads_source() ? cache_.bytes_per_source_token() : cache_.bytes_per_token());
  }
  Need need_of(const Expected& expected) const {
    double bytes =
        bytes_of_prompt(expected.prompt_tokens) + bytes_of_tokens(expected.new_tokens, cache_.bytes_per_token());
    if (!reads_source()) {
      bytes += bytes_of_tokens(expected.prompt_tokens, cache_.bytes_per_forked_token()) *
               static_cast<double>(expected.forks);
    }
    return {bytes, expected.prompt_tokens, expected.new_tokens};
  }
  Need need_of_fork(std::int64_t sequence, const Expected& expected) const {
    Need need = need_of(expected);
    if (reads_source()) need.bytes = bytes_of_tokens(expected.new_tokens, cache_.bytes_per_token());
    need.bytes += bytes_of_tokens(cache_.length(sequence), cache_.bytes_per_forked_token()) *
                  static_cast<double>(1 + expected.forks);
    need.prompt += std::max<std::int64_t>(0, tokens_of(sequence));
    return need;
  }

  double left() const { return std::max(0.0, static_cast<double>(memory_ - cache_.bytes_for_good()) - promised_); }
  bool has_room(const Need& need) const {
    refuse_above(need, static_cast<double>(memory_));
    return memory_ < 0 || need.bytes <= left();
  }
  std::shared_ptr<Promise> promised(const Need& need) {
    refuse_above(need, left());
    return std::make_shared<Promise>(need.bytes, promised_);
  }
  void refuse_above(const Need& need, double available) const {
    constexpr double kMebibyte = 1048576.0;
    require<InputError>(memory_ < 0 || need.bytes <= available, "a ", reads_source() ? "source" : "prompt", " of ",
                        need.prompt, " tokens and ", need.new_tokens, " new ones need ",
                        std::ceil(need.bytes / kMebibyte), " MiB for keys and values, but ",
                        std::floor(available / kMebibyte),
                        " MiB are available; give a shorter one, ask for fewer tokens or samples at a time, or use a "
                        "model whose heads have windows (local, routing)");
  }

  ModelCache cache_;
  std::int64_t memory_;  // for heads without a window; below 0 if nobody knows
  double promised_ = 0.0;
  std::map<std::int64_t, std::shared_ptr<Promise>> promises_;  // of all sequences; forks share theirs
};

}  // namespace

std::unique_ptr<Decoder> make_cached_decoder(const std::shared_ptr<SequenceModel>& model,
                                             const DecoderOptions& options) {
  return std::make_unique<CachedDecoder>(model, options);
}

}  // namespace routing
