#include "inputs/run_model.h"

#include "inputs/piped_data.h"
#include "routing/config/text/path_list.h"
#include "routing/core/error.h"
#include "routing/data/formats.h"
#include "routing/data/prepared.h"
#include "routing/data/sources/text_tree.h"
#include "routing/data/tokenizers/byte_tokenizer.h"
#include "routing/data/tokenizers/tokenizers.h"
#include "routing/model/weights.h"
#include "routing/training/learner.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>

namespace routing {
namespace {

namespace fs = std::filesystem;

TokenKind kind_of_file(const fs::path& file, const DataConfig& data) {
  const TokenKind said = kind_of(data);
  if (said == TokenKind::words || said == TokenKind::subwords) return said;
  return file.extension() == ".model" ? TokenKind::subwords : TokenKind::words;
}

bool reads_bytes(const ExperimentConfig& config, const std::string& learned_hash) {
  if (!learned_hash.empty()) return learned_hash == DataFacts().tokenizer_hash;
  return kind_of(config.data) == TokenKind::bytes;
}

}  // namespace

bool is_data_there(const DataConfig& data) {
  const std::vector<std::string> paths = paths_in(data.path);
  return !paths.empty() && std::all_of(paths.begin(), paths.end(),
                                       [](const std::string& path) { return is_pattern(path) || is_there(path); });
}

TokenKind kind_of(const DataConfig& data) {
  if (data.tokens != TokenKind::automatic) return data.tokens;
  if (is_prepared(data.path)) return read_data_facts(data.path).tokens;
  if (data.format != DataFormat::automatic) return token_kind(data.format, data.tokens);
  return is_data_there(data) ? look_at_data(data).tokens : TokenKind::automatic;
}

std::unique_ptr<Tokenizer> model_tokenizer(const fs::path& model, const ExperimentConfig& config,
                                           const std::string& vocabulary) {
  const std::string learned = load_model_notes(model).tokenizer_hash;
  if (reads_bytes(config, learned)) {
    require<ConfigError>(vocabulary.empty(), model.string(), ": reads bytes, which need no vocabulary; leave out ",
                         "--vocabulary ", vocabulary);
    return std::make_unique<ByteTokenizer>();
  }
  fs::path file = vocabulary;
  TokenKind kind = vocabulary.empty() ? TokenKind::automatic : kind_of_file(file, config.data);
  for (const TokenKind candidate : {TokenKind::words, TokenKind::subwords}) {
    if (!file.empty()) break;
    file = kept_tokenizer(model, candidate);
    kind = candidate;
  }
  require<FileError>(!file.empty(), model.string(),
                     ": the vocabulary of its tokens is not kept in the run's folder (vocabulary.txt or "
                     "subwords.model); give it with --vocabulary FILE");
  std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(to_string(kind), file);
  require<ConfigError>(learned.empty() || learned == tokenizer->hash(), file.string(),
                       ": its tokens are those of vocabulary ", tokenizer->hash(), ", but ", model.string(),
                       " learned those of ", learned, "; give the vocabulary of the run with --vocabulary FILE");
  return tokenizer;
}

std::string audit_text(const ModelNotes& notes) {
  return notes.audit.empty() ? "not audited" : notes.audit;
}

bool is_own_data(const OtherData& other, const ExperimentConfig& config) {
  if (other.path.empty()) return true;
  // An exported model names no data.
  return !config.data.path.empty() && tidy_paths(other.path) == tidy_paths(config.data.path);
}

DataConfig run_data_config(const fs::path& model, const ExperimentConfig& config, const OtherData& other) {
  DataConfig data = config.data;
  if (!is_own_data(other, config)) {
    data.tokens = kind_of(config.data);
    data.format = DataFormat::automatic;
    data.path = tidy_paths(other.path);
    data.image_size = config.model.image_height == 0 ? 0 : data.image_size;
    // What is prepared has its vocabulary, which is compared afterwards.
    data.vocabulary = is_prepared(data.path) ? "" : kept_tokenizer(model, data.tokens).string();
  } else {
    data.path = found_again(data.path, fs::absolute(model).parent_path().parent_path().parent_path());
  }
  if (!other.vocabulary.empty()) data.vocabulary = fs::absolute(other.vocabulary).string();
  return data;
}

void require_tokens_of_run(const fs::path& model, const Dataset& data) {
  const std::string learned = load_model_notes(model).tokenizer_hash;
  require<ConfigError>(learned.empty() || learned == data.facts().tokenizer_hash, data.path().string(),
                       ": its tokens are those of vocabulary ", data.facts().tokenizer_hash, ", but ", model.string(),
                       " learned those of ", learned,
                       "; give the vocabulary of the run with --vocabulary FILE, or data with its tokens");
}

std::string note_of_length(const ExperimentConfig& config, std::int64_t longest) {
  const std::int64_t trained = config.train.sequence_length;
  // With a memory training goes on from segment to segment, so longer sequences are what it has seen.
  if (longest <= trained || config.memory.length > 0) return {};
  const bool has_windows = config.attention.content != PatternKind::full;
  std::string note = "note: token " + std::to_string(trained + 1) + " is past train.sequence_length " +
                     std::to_string(trained) + "; " + (has_windows ? "windows go on" : "attention goes on") +
                     ", quality beyond is untested";
  // Tables that reached over all of a sequence in training, and do not any more.
  std::set<std::string> named;
  for (const LayerRule& rule : layer_rules(config)) {
    for (const HeadGroupConfig& group : rule.head_groups) {
      const bool ends = group.relative == RelativePosition::true_offset && group.max_relative >= trained - 1 &&
                        group.max_relative < longest - 1;
      const bool has_reach = !std::holds_alternative<LocalPattern>(group.pattern) &&
                             !std::holds_alternative<Local2dPattern>(group.pattern) &&
                             !std::holds_alternative<SpanPattern>(group.pattern);
      if (!ends || !has_reach || !named.insert(pattern_name(group.pattern)).second) continue;
      note += "; relative positions of " + pattern_name(group.pattern) + " heads end at " +
              std::to_string(group.max_relative) + " tokens, and all beyond count as that";
    }
  }
  return note;
}

MatmulPrecision chosen_precision(const std::string& option, const ExperimentConfig& config) {
  return matmul_precision(option.empty() ? config.train.precision : parse_word<Precision>(option, "train.precision"));
}

}  // namespace routing
