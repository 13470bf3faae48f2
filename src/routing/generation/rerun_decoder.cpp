#include "routing/config/memory_rules.h"
#include "routing/core/error.h"
#include "routing/generation/model_decoder.h"
#include "routing/model/model_memory.h"

#include <algorithm>
#include <map>
#include <utility>

namespace routing {
namespace {

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

  std::int64_t open(const Expected& /*expected*/) override {
    check_open();
    Sequence sequence{.length = -1, .segments = {.length = evaluation_memory(model().config())}};
    sequences_.emplace(next_, std::move(sequence));
    return next_++;
  }

  std::vector<float> extend(std::int64_t sequence, std::span<const std::int32_t> tokens) override {
    Sequence& more = live(sequence);
    check_more(tokens, more.length);
    more.length = std::max<std::int64_t>(0, more.length);
    for (const std::int32_t token : tokens) read(more, token);
    return numbers_of(next_logits(more));
  }

  at::Tensor step(std::span<const std::int64_t> sequences, std::span<const std::int32_t> tokens) override {
    check_step(sequences, tokens);
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      check_tokens(tokens.subspan(i, 1), live(sequences[i]).length);
    }
    std::vector<at::Tensor> logits;
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      Sequence& sequence = live(sequences[i]);
      read(sequence, tokens[i]);
      logits.push_back(next_logits(sequence));
    }
    return at::stack(logits);
  }

  std::int64_t fork(std::int64_t sequence) override {
    Sequence copy = at(sequence);
    copy.kept = false;
    sequences_.emplace(next_, std::move(copy));
    return next_++;
  }
  std::int64_t fork(std::int64_t sequence, const Expected& /*expected*/) override { return fork(sequence); }
  std::int64_t keep(std::int64_t sequence) override {
    const std::int64_t made = fork(sequence);
    at(made).kept = true;
    return made;
  }
  void drop(std::int64_t sequence) override {
    at(sequence);
    sequences_.erase(sequence);
  }
  bool has_room(const Expected& /*expected*/) const override { return true; }
  bool has_room(std::int64_t fork_of, const Expected& /*expected*/) const override {
    at(fork_of);
    return true;
  }

  std::int64_t prompt_block() const override { return 0; }
  std::string label() const override { return "re-runs the prefix"; }
  std::string reason() const override { return reason_; }
  std::int64_t cache_bytes() const override {
    std::int64_t bytes = 0;
    for (const auto& [number, sequence] : sequences_) bytes += sequence.segments.bytes();
    return bytes;
  }
  std::int64_t kept_bytes() const override {
    std::int64_t bytes = 0;
    for (const auto& [number, sequence] : sequences_) bytes += sequence.kept ? sequence.bytes() : 0;
    return bytes;
  }
  std::int64_t bytes_of(std::int64_t sequence) const override { return at(sequence).bytes(); }

 private:
  // Of a model that remembers, `tokens` are those of the segment that is not whole yet.
  struct Sequence {
    std::vector<std::int64_t> tokens = {};
    std::int64_t length = 0;  // -1: just opened
    SourceMemory memory = {};
    ModelMemory segments = {};
    bool kept = false;

    std::int64_t bytes() const {
      const std::int64_t source = memory.values.defined() ? static_cast<std::int64_t>(memory.values.nbytes()) : 0;
      return source + segments.bytes() + static_cast<std::int64_t>(tokens.size() * sizeof(std::int64_t));
    }
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

  const Sequence& at(std::int64_t sequence) const {
    const auto found = sequences_.find(sequence);
    require<InputError>(found != sequences_.end(), "decoder: there is no sequence ", sequence, "; begin it first");
    return found->second;
  }
  Sequence& at(std::int64_t sequence) { return const_cast<Sequence&>(std::as_const(*this).at(sequence)); }
  // One that may read.
  Sequence& live(std::int64_t sequence) {
    Sequence& found = at(sequence);
    require<InputError>(!found.kept, "decoder: sequence ", sequence, " is kept as it is; read with a fork of it");
    return found;
  }

  at::Tensor next_logits(Sequence& sequence) {
    return model().next_logits(sequence.tokens, context_of(sequence), sequence.memory);
  }

  std::string reason_;
  std::map<std::int64_t, Sequence> sequences_;
  std::int64_t next_ = 0;
};

}  // namespace

std::unique_ptr<Decoder> make_rerun_decoder(std::shared_ptr<SequenceModel> model, const DecoderOptions& options,
                                            std::string reason) {
  return std::make_unique<RerunDecoder>(std::move(model), options, std::move(reason));
}

}  // namespace routing
