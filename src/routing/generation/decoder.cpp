#include "routing/generation/decoder.h"

#include "routing/config/memory_rules.h"
#include "routing/core/error.h"
#include "routing/core/memory.h"
#include "routing/model/absolute_positions.h"
#include "routing/model/image_embedding.h"
#include "routing/model/model_memory.h"
#include "routing/ops/dense/packed_weights.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace routing {
namespace {

std::vector<float> numbers_of(const at::Tensor& logits) {
  const at::Tensor row = logits.contiguous();
  return {row.data_ptr<float>(), row.data_ptr<float>() + row.numel()};
}

at::Tensor as_tensor(std::span<const std::int32_t> tokens, at::IntArrayRef sizes) {
  at::Tensor tensor = at::empty(sizes, at::kLong);
  std::copy(tokens.begin(), tokens.end(), tensor.data_ptr<std::int64_t>());
  return tensor;
}

// What both kinds of decoders share: the model, and what it cannot take.
class ModelDecoder : public Decoder {
 public:
  ModelDecoder(std::shared_ptr<SequenceModel> model, DecoderOptions options)
      : model_(std::move(model)), options_(std::move(options)) {
    require<ConfigError>(options_.prefill_block >= 1, "decoder: prefill_block is ", options_.prefill_block,
                         ", but must be at least 1");
    model_->eval();
  }

  bool reads_source() const override { return model_->reads_source(); }
  std::int64_t vocabulary_size() const override { return model_->config().model.vocab_size; }
  std::int64_t longest_sequence() const override {
    const ExperimentConfig& config = model_->config();
    if (config.model.image_height > 0) return image_values(config.model);
    return longest_of_positions(config);
  }

 protected:
  void check_tokens(std::span<const std::int32_t> tokens, std::int64_t first_position) const {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      require<InputError>(tokens[i] >= 0 && tokens[i] < vocabulary_size(), "token ", tokens[i], " at position ",
                          first_position + static_cast<std::int64_t>(i), ", but the vocabulary has ids 0 to ",
                          vocabulary_size() - 1);
    }
  }
  void check_prompt(std::span<const std::int32_t> prompt) const {
    check_tokens(prompt, 0);
    require<InputError>(!reads_source() || !prompt.empty(),
                        "the source is empty, but an encoder needs at least one token");
    const auto tokens = static_cast<std::int64_t>(prompt.size());
    // Beside the prompt there is one token that is to be predicted.
    require<InputError>(reads_source() || longest_sequence() == 0 || tokens < longest_sequence(), "a prompt of ",
                        tokens, " tokens, but sequences of this model end after ", longest_sequence(),
                        "; give fewer, so that there is something left to predict");
  }
  // A prompt is either the source or the beginning of the sequence.
  at::Tensor source_of(std::span<const std::int32_t> prompt) const {
    if (!reads_source()) return {};
    return as_tensor(prompt, {1, static_cast<std::int64_t>(prompt.size())});
  }
  std::span<const std::int32_t> beginning_of(std::span<const std::int32_t> prompt) const {
    return reads_source() ? std::span<const std::int32_t>() : prompt;
  }
  static void check_step(std::span<const std::int64_t> sequences, std::span<const std::int32_t> tokens) {
    require<InputError>(tokens.size() == sequences.size(), "decoder: ", tokens.size(), " tokens for ", sequences.size(),
                        " sequences; give one each");
    for (auto sequence = sequences.begin(); sequence != sequences.end(); ++sequence) {
      require<InputError>(std::find(sequences.begin(), sequence, *sequence) == sequence, "decoder: sequence ",
                          *sequence, " is named twice; give it one token per step");
    }
  }
  ForwardContext forward_context() const { return {.precision = options_.precision}; }
  SequenceModel& model() const { return *model_; }
  const DecoderOptions& options() const { return options_; }

 private:
  std::shared_ptr<SequenceModel> model_;
  DecoderOptions options_;
};

// Memory that a sequence and its forks may still take.
class Promise {
 public:
  Promise(double bytes, double& total) : bytes_(bytes), total_(&total) { *total_ += bytes_; }
  ~Promise() { *total_ -= bytes_; }
  Promise(const Promise&) = delete;
  Promise& operator=(const Promise&) = delete;

 private:
  double bytes_;
  double* total_;
};

class CachedDecoder : public ModelDecoder {
 public:
  CachedDecoder(const std::shared_ptr<SequenceModel>& sequence_model, DecoderOptions options)
      : ModelDecoder(sequence_model, std::move(options)),
        cache_(model().make_cache()),
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
    std::shared_ptr<Promise> promise = promised(given, expected);
    const std::int64_t sequence = model().begin_sequence(cache_, source_of(prompt), forward_context());
    try {
      cache_.reserve((reads_source() ? 0 : given + 1) + expected.new_tokens);
      Begun begun{sequence, read_prompt(sequence, beginning_of(prompt))};
      promises_[sequence] = std::move(promise);
      return begun;
    } catch (...) {
      cache_.drop_sequence(sequence);
      throw;
    }
  }

  at::Tensor step(std::span<const std::int64_t> sequences, std::span<const std::int32_t> tokens) override {
    const auto count = static_cast<std::int64_t>(sequences.size());
    check_step(sequences, tokens);
    for (std::size_t i = 0; i < tokens.size(); ++i) check_tokens(tokens.subspan(i, 1), cache_.length(sequences[i]) - 1);
    return logits(as_tensor(tokens, {count, 1}), sequences).view({count, vocabulary_size()});
  }

  std::int64_t fork(std::int64_t sequence) override {
    const std::int64_t made = cache_.fork_sequence(sequence);
    promises_[made] = promises_[sequence];
    return made;
  }
  void drop(std::int64_t sequence) override {
    cache_.drop_sequence(sequence);
    promises_.erase(sequence);
  }
  std::string label() const override { return "cached"; }
  std::string reason() const override { return {}; }
  std::int64_t cache_bytes() const override { return cache_.bytes(); }

 private:
  at::Tensor logits(const at::Tensor& previous, std::span<const std::int64_t> sequences) {
    const CachedContext context{.precision = options().precision, .last_only = true};
    return model().logits_cached(previous, cache_, sequences, context);
  }

  // Position 0 reads the start and predicts the first token, so a prompt of n tokens is n + 1 positions.
  std::vector<float> read_prompt(std::int64_t sequence, std::span<const std::int32_t> prompt) {
    const std::vector<std::int64_t> sequences{sequence};
    std::vector<std::int32_t> previous(prompt.size() + 1, 0);
    std::copy(prompt.begin(), prompt.end(), previous.begin() + 1);
    const auto total = static_cast<std::int64_t>(previous.size());
    at::Tensor last;
    for (std::int64_t first = 0; first < total; first += options().prefill_block) {
      const std::int64_t count = std::min(options().prefill_block, total - first);
      const auto block = std::span(previous).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
      last = logits(as_tensor(block, {1, count}), sequences);
      if (options().progress) options().progress(first + count, total);
    }
    return numbers_of(last);
  }

  // In double: what is asked for may be beyond all numbers.
  std::shared_ptr<Promise> promised(std::int64_t prompt, const Expected& expected) {
    const auto of = [](std::int64_t tokens, std::int64_t bytes) {
      return static_cast<double>(tokens) * static_cast<double>(bytes);
    };
    const double read = reads_source()
                            ? of(prompt, cache_.bytes_per_source_token())
                            : of(prompt, cache_.bytes_per_token()) +
                                  of(prompt, cache_.bytes_per_forked_token()) * static_cast<double>(expected.forks);
    const double needed = read + of(expected.new_tokens, cache_.bytes_per_token());
    const double left = std::max(0.0, static_cast<double>(memory_) - promised_);
    constexpr double kMebibyte = 1048576.0;
    require<InputError>(memory_ < 0 || needed <= left, "a ", reads_source() ? "source" : "prompt", " of ", prompt,
                        " tokens and ", expected.new_tokens, " new ones need ", std::ceil(needed / kMebibyte),
                        " MiB for keys and values, but ", std::floor(left / kMebibyte),
                        " MiB are available; give a shorter one, ask for fewer tokens or samples at a time, or use a "
                        "model whose heads have windows (local, routing)");
    return std::make_shared<Promise>(needed, promised_);
  }

  ModelCache cache_;
  std::int64_t memory_;  // for heads without a window; below 0 if nobody knows
  double promised_ = 0.0;
  std::map<std::int64_t, std::shared_ptr<Promise>> promises_;  // of all sequences; forks share theirs
};

class RerunDecoder : public ModelDecoder {
 public:
  RerunDecoder(std::shared_ptr<SequenceModel> model, DecoderOptions options, std::string reason)
      : ModelDecoder(std::move(model), std::move(options)), reason_(std::move(reason)) {}

  using Decoder::begin;
  Begun begin(std::span<const std::int32_t> prompt, const Expected& /*expected*/) override {
    check_prompt(prompt);
    const at::NoGradGuard no_gradient;
    const std::span<const std::int32_t> beginning = beginning_of(prompt);
    Sequence sequence{.memory = model().encode(source_of(prompt), {}, forward_context()),
                      .segments = {.length = evaluation_memory(model().config())}};
    for (const std::int32_t token : beginning) read(sequence, token);
    const std::vector<float> logits = numbers_of(next_logits(sequence));
    sequences_.emplace(next_, std::move(sequence));
    return {next_++, logits};
  }

  at::Tensor step(std::span<const std::int64_t> sequences, std::span<const std::int32_t> tokens) override {
    check_step(sequences, tokens);
    std::vector<at::Tensor> logits;
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      Sequence& sequence = at(sequences[i]);
      check_tokens(tokens.subspan(i, 1), sequence.length);
      read(sequence, tokens[i]);
      logits.push_back(next_logits(sequence));
    }
    return at::stack(logits);
  }

  std::int64_t fork(std::int64_t sequence) override {
    sequences_.emplace(next_, at(sequence));
    return next_++;
  }
  void drop(std::int64_t sequence) override {
    at(sequence);
    sequences_.erase(sequence);
  }
  std::string label() const override { return "re-runs the prefix"; }
  std::string reason() const override { return reason_; }
  std::int64_t cache_bytes() const override {
    std::int64_t total = 0;
    for (const auto& [number, sequence] : sequences_) total += sequence.segments.bytes();
    return total;
  }

 private:
  // Of a model that remembers, `tokens` are those of the segment that is not whole yet.
  struct Sequence {
    std::vector<std::int64_t> tokens = {};
    std::int64_t length = 0;
    SourceMemory memory = {};
    ModelMemory segments = {};
  };

  bool remembers() const { return model().config().memory.length > 0; }
  ForwardContext context_of(Sequence& sequence) const {
    ForwardContext context = forward_context();
    if (remembers()) context.memory = &sequence.segments;
    return context;
  }
  void read(Sequence& sequence, std::int32_t token) {
    sequence.tokens.push_back(token);
    ++sequence.length;
    const auto tokens = static_cast<std::int64_t>(sequence.tokens.size());
    if (!remembers() || tokens < model().config().train.sequence_length) return;
    model().remember(at::tensor(sequence.tokens, at::kLong).unsqueeze(0), context_of(sequence));
    sequence.tokens.clear();
  }

  Sequence& at(std::int64_t sequence) {
    const auto found = sequences_.find(sequence);
    require<InputError>(found != sequences_.end(), "decoder: there is no sequence ", sequence, "; begin it first");
    return found->second;
  }

  at::Tensor next_logits(Sequence& sequence) {
    return model().next_logits(sequence.tokens, context_of(sequence), sequence.memory);
  }

  std::string reason_;
  std::map<std::int64_t, Sequence> sequences_;
  std::int64_t next_ = 0;
};

}  // namespace

std::unique_ptr<Decoder> make_decoder(std::shared_ptr<SequenceModel> model, const DecoderOptions& options) {
  require<InputError>(model != nullptr, "decoder: there is no model to decode with");
  if (!options.allow_cache) return std::make_unique<RerunDecoder>(std::move(model), options, "a cache was not wanted");
  const std::string reason = model->reason_against_cache();
  if (reason.empty()) return std::make_unique<CachedDecoder>(model, options);
  if (model->config().memory.compressed > 0) {
    return std::make_unique<RerunDecoder>(std::move(model), options,
                                          reason + ", so each new token runs its segment again");
  }
  return std::make_unique<RerunDecoder>(
      std::move(model), options,
      reason +
          ", so each new token runs the whole prefix again; a model with routing.selection = threshold or nearest, "
          "local, strided, fixed, lsh or full heads decodes with a cache");
}

}  // namespace routing
