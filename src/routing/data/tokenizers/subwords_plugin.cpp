#include "routing/data/tokenizers/subwords_plugin.h"

#include <exception>
#include <memory>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace routing {
namespace {

using sentencepiece::SentencePieceProcessor;
using sentencepiece::SentencePieceTrainer;

struct Owner {
  std::string bytes;
  std::vector<int> ids;
};

static_assert(sizeof(int) == sizeof(std::int32_t));

// Whatever happens inside, it comes back as a result.
template <class Action>
void run(SubwordsResult* result, const Action& action) {
  *result = {};
  Owner* owner = nullptr;
  try {
    owner = new Owner;
    result->owner = owner;
    const sentencepiece::util::Status status = action(*owner);
    if (status.ok()) return;
    owner->bytes = status.ToString();
    result->error = owner->bytes.c_str();
  } catch (const std::exception& error) {
    result->error = "out of memory";
    if (owner == nullptr) return;
    try {
      owner->bytes = error.what();
      result->error = owner->bytes.c_str();
    } catch (const std::exception&) {
    }
  }
  result->data = nullptr;
  result->size = 0;
}

void* load(const char* model, std::size_t size, SubwordsResult* result) {
  std::unique_ptr<SentencePieceProcessor> processor;
  run(result, [&](Owner&) {
    processor = std::make_unique<SentencePieceProcessor>();
    return processor->LoadFromSerializedProto(std::string_view(model, size));
  });
  if (result->error != nullptr) return nullptr;
  return processor.release();
}

void unload(void* model) {
  delete static_cast<SentencePieceProcessor*>(model);
}

void encode(const void* model, const char* text, std::size_t size, SubwordsResult* result) {
  run(result, [&](Owner& owner) {
    const auto status =
        static_cast<const SentencePieceProcessor*>(model)->Encode(std::string_view(text, size), &owner.ids);
    result->data = owner.ids.data();
    result->size = owner.ids.size();
    return status;
  });
}

class Lines : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(std::string_view text) : text_(text) { advance(); }
  bool done() const override { return done_; }
  const std::string& value() const override { return line_; }
  sentencepiece::util::Status status() const override { return {}; }
  void Next() override { advance(); }

 private:
  void advance() {
    const std::size_t end = text_.find('\n');
    done_ = end == std::string_view::npos;
    if (done_) return;
    line_ = text_.substr(0, end);
    text_.remove_prefix(end + 1);
  }

  std::string_view text_;
  std::string line_;
  bool done_ = false;
};

// BPE: its merges are counts with all ties broken by the pieces themselves, so equal lines give equal models; unigram
// models are sums of floating-point numbers over threads. The rest keeps every byte of a text: see subwords.h.
void train(const SubwordsTraining* training, SubwordsResult* result) {
  run(result, [&](Owner& owner) {
    const std::unordered_map<std::string, std::string> options{
        {"model_type", "bpe"},
        {"vocab_size", std::to_string(training->vocabulary_size)},
        {"hard_vocab_limit", "false"},
        {"normalization_rule_name", "identity"},
        {"add_dummy_prefix", "false"},
        {"remove_extra_whitespaces", "false"},
        {"allow_whitespace_only_pieces", "true"},
        {"byte_fallback", "true"},
        {"character_coverage", "0.9999"},
        {"user_defined_symbols", "\n"},
        {"eos_id", "0"},
        {"unk_id", "1"},
        {"bos_id", "-1"},
        {"pad_id", "-1"},
        {"num_threads", "1"},
        {"shuffle_input_sentence", "false"},
        {"max_sentence_length", std::to_string(training->longest_line)},
        {"minloglevel", "4"},  // beyond errors: it must not print
    };
    Lines lines(std::string_view(training->lines, training->size));
    const auto status = SentencePieceTrainer::Train(options, &lines, &owner.bytes);
    result->data = owner.bytes.data();
    result->size = owner.bytes.size();
    return status;
  });
}

void release(SubwordsResult* result) {
  delete static_cast<Owner*>(result->owner);
  *result = {};
}

constexpr SubwordsPlugin kPlugin{.version = kSubwordsPluginVersion,
                                 .load = load,
                                 .unload = unload,
                                 .encode = encode,
                                 .train = train,
                                 .release = release};

}  // namespace
}  // namespace routing

extern "C" const routing::SubwordsPlugin* routing_subwords_plugin() {
  return &routing::kPlugin;
}
