#include "analyze/audit_subject.h"

#include "inputs/run_model.h"
#include "routing/config/text/path_list.h"
#include "routing/config/text/vocabulary_bands.h"
#include "routing/core/error.h"
#include "routing/core/random.h"
#include "routing/data/dataset.h"
#include "routing/data/formats.h"
#include "routing/data/tasks/recall_task.h"
#include "routing/data/tasks/sequence_tasks.h"
#include "routing/evaluation/recall_accuracy.h"
#include "routing/model/weights.h"
#include "routing/training/training_data.h"

#include <algorithm>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

namespace routing {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSequences = 2;
// Of made-up tokens, where neither configuration nor data say how many ids there are.
constexpr std::int64_t kMadeUpIds = 256;

// The experiment's own data as they are; others with the tokens and the vocabulary of the run.
DataConfig data_config(const AuditSubjectOptions& options, const ExperimentConfig& config, const fs::path& model) {
  if (!model.empty()) return run_data_config(model, config, {.path = options.data, .vocabulary = options.vocabulary});
  DataConfig data = config.data;
  if (!options.data.empty()) data.path = tidy_paths(options.data);
  if (!options.vocabulary.empty()) data.vocabulary = fs::absolute(options.vocabulary).string();
  return data;
}

// Two windows of the evaluation's part, or of what there is: its start and its middle.
at::Tensor windows(const Dataset& data, const ExperimentConfig& config, std::int64_t wanted, std::string& from) {
  const auto& parts = data.parts();
  const auto found = std::find_if(parts.begin(), parts.end(), [&](const auto& part) {
    return part.first == (data.has(config.eval.split) ? config.eval.split : "train");
  });
  require<ConfigError>(found != parts.end() && found->second.tokens.size() >= 2, data.path().string(),
                       ": holds fewer than 2 tokens, but an audit needs some to change; give other data with --data");
  const TokenView& tokens = found->second.tokens;
  const std::int64_t record = data.facts().record_length();
  const std::int64_t n = std::min({wanted, tokens.size(), record > 0 ? record : wanted});
  std::int64_t second = (tokens.size() - n) / 2;
  if (record > 0) second = second / record * record;
  at::Tensor result = at::empty({kSequences, n}, at::kLong);
  for (std::int64_t row = 0; row < kSequences; ++row) {
    tokens.copy(row == 0 ? 0 : second,
                std::span(result.data_ptr<std::int64_t>() + row * n, static_cast<std::size_t>(n)));
  }
  from = "the " + found->first + " part of " + data.path().string();
  return result;
}

at::Tensor made_up(const std::vector<std::int64_t>& sizes, std::int64_t ids, std::uint64_t seed) {
  at::Tensor tokens = at::empty(sizes, at::kLong);
  RandomStream stream(seed, "audit tokens", {static_cast<std::uint64_t>(sizes.size())});
  for (std::int64_t i = 0; i < tokens.numel(); ++i) {
    tokens.data_ptr<std::int64_t>()[i] = stream.below(static_cast<std::uint32_t>(ids));
  }
  return tokens;
}

void take_pairs(const ExperimentConfig& config, AuditSubject& subject) {
  const SequencePairs pairs(sequence_task_options(config));
  const PairBatch batch = pairs.batch(config.eval.split, 0, kSequences);
  const auto tensor_of = [](const PaddedSequences& sequences) {
    const auto rows = static_cast<std::int64_t>(sequences.ids.size()) / sequences.length;
    return at::tensor(sequences.ids, at::kLong).view({rows, sequences.length});
  };
  subject.tokens = tensor_of(batch.target);
  subject.source = tensor_of(batch.source)[0];
  subject.tokens_from = "made-up pairs, " + std::string(to_string(config.data.format));
}

// Added heads start silent (attention.add_content); what they read too early would not show in fresh weights. Columns
// of output layers that are zero get the numbers of the first ones, which are those of local heads.
void wake_added_heads(SequenceModel& model) {
  const at::NoGradGuard no_gradient;
  for (const auto& parameter : model.named_parameters()) {
    if (!parameter.key().ends_with("output_weight") || parameter.value().dim() != 2) continue;
    at::Tensor weight = parameter.value();
    const at::Tensor silent = weight.abs().sum(0) == 0.0;
    if (!silent.any().item<bool>()) continue;
    const at::Tensor columns = silent.nonzero().flatten();
    weight.index_copy_(1, columns, weight.narrow(1, 0, columns.size(0)));
  }
}

// Where there are bands, as many words in the last as in the others.
std::int64_t made_up_ids(const ModelConfig& model) {
  const std::vector<std::int64_t> ends = parse_bands(model.bands);
  return std::max(kMadeUpIds, ends.empty() ? 0 : 2 * ends.back());
}

}  // namespace

AuditSubject open_audit_subject(const AuditSubjectOptions& options) {
  const bool fresh = options.run.empty();
  AuditSubject subject;
  ExperimentConfig config;
  if (fresh) {
    config = options.experiment;
  } else {
    subject.model_file = model_file(options.run, options.checkpoint);
    subject.model_time = fs::last_write_time(subject.model_file);
    config = load_model_config(subject.model_file);
  }
  const std::int64_t wanted = options.sequence_length > 0 ? options.sequence_length : config.train.sequence_length;
  const bool pairs = config.model.encoder_layers > 0;
  require<ConfigError>(!pairs || (is_made_up(config.data.format) && options.data.empty()), config.name,
                       ": is an encoder-decoder, which is audited on made-up pairs; leave out --data");
  require<ConfigError>(!pairs || options.sequence_length == 0, config.name,
                       ": is an encoder-decoder, whose pairs are as long as in training; leave out --sequence-length");
  if (pairs) {
    take_pairs(config, subject);
  } else if (config.data.format == DataFormat::recall && options.data.empty()) {
    subject.tokens = recall_tokens(RecallTask(recall_options(config)), config.eval.split, 0, {kSequences, wanted});
    subject.tokens_from = "made-up facts and questions, part " + config.eval.split;
  } else if (!options.data.empty() || is_data_there(config.data)) {
    const Dataset data(data_config(options, config, subject.model_file),
                       {.train_needed = is_own_data({.path = options.data}, config), .notes = options.notes});
    if (!fresh) require_tokens_of_run(subject.model_file, data);
    config = fitted_to(config, data.facts());
    subject.tokens = windows(data, config, wanted, subject.tokens_from);
  } else {
    if (config.model.vocab_size == 0) config.model.vocab_size = made_up_ids(config.model);
    subject.tokens = made_up({kSequences, wanted}, config.model.vocab_size, options.seed);
    subject.tokens_from = config.data.path.empty()
                              ? "made-up tokens, drawn uniformly"
                              : "made-up tokens, since the data are not at " + shown_paths(config.data.path);
  }
  subject.model =
      fresh ? make_model(config, at::TensorOptions().dtype(at::kFloat)) : load_sequence_model(subject.model_file);
  if (fresh) wake_added_heads(*subject.model);
  return subject;
}

}  // namespace routing
