#include "routing/model/parameter_count.h"

#include "routing/model/sequence_model.h"

#include <string>

namespace routing {
namespace {

constexpr std::int64_t kSmallVocabulary = 16;

ParameterCount counted(const ExperimentConfig& config, std::int64_t vocabulary) {
  ExperimentConfig sized = config;
  sized.model.vocab_size = vocabulary;
  // What the ids stand for does not matter here, and recall would refuse so few.
  if (sized.data.format == DataFormat::recall) sized.data = {};
  const auto model = make_model(sized, at::TensorOptions().device(at::kMeta));
  ParameterCount count;
  for (const auto& item : model->named_parameters()) {
    const std::string& name = item.key();
    const auto holds = [&](const char* part) { return name.find(part) != std::string::npos; };
    const bool in_a_layer = name.starts_with("layer") || name.starts_with("encoder") || name.starts_with("decoder");
    std::int64_t& part = holds("norm")                        ? count.norms
                         : in_a_layer && holds("feedforward") ? count.feedforward
                         : in_a_layer                         ? count.attention
                         : name.starts_with("output")         ? count.output
                                                              : count.embedding;
    part += item.value().numel();
  }
  return count;
}

}  // namespace

ParameterCount count_parameters(const ExperimentConfig& config) {
  const ParameterCount small = counted(config, kSmallVocabulary);
  const ParameterCount larger = counted(config, kSmallVocabulary + 1);
  const auto without_words = [&](std::int64_t part, std::int64_t of_one_word_more) {
    return part - kSmallVocabulary * (of_one_word_more - part);
  };
  ParameterCount count = small;
  if (config.model.vocab_size > 0) {
    count = counted(config, config.model.vocab_size);
  } else {
    count.embedding = without_words(small.embedding, larger.embedding);
    count.output = without_words(small.output, larger.output);
  }
  count.a_word = larger.total() - small.total();
  return count;
}

}  // namespace routing
