// What stands behind the RUN of a command: the model file, and the tokens that the model reads.
#pragma once

#include "inputs/run_files.h"
#include "routing/config/experiment.h"
#include "routing/data/dataset.h"
#include "routing/data/tokenizers/tokenizer.h"
#include "routing/model/weights.h"
#include "routing/ops/precision.h"

#include <filesystem>
#include <memory>
#include <string>

namespace routing {

// Is there something at every path that the configuration names?
bool is_data_there(const DataConfig& data);

// What kind of tokens the model reads, as far as its configuration says.
TokenKind kind_of(const DataConfig& data);

// The tokeniser of a model of text: bytes, what the run keeps, or the file `vocabulary` if it is not empty.
//
// Throws  ConfigError  a tokeniser other than the one whose ids the model learned, or a vocabulary for bytes
//         FileError    no tokeniser is kept
std::unique_ptr<Tokenizer> model_tokenizer(const std::filesystem::path& model, const ExperimentConfig& config,
                                           const std::string& vocabulary);

// What `routing audit` wrote into the model file, or "not audited".
std::string audit_text(const ModelNotes& notes);

// What a command reads instead of the data that a run was trained on; both may be empty.
struct OtherData {
  std::string path = {};
  std::string vocabulary = {};
};
// Is it the run's own data?
bool is_own_data(const OtherData& other, const ExperimentConfig& config);
// The run's own data as it was trained on; other data with the run's tokens and vocabulary.
DataConfig run_data_config(const std::filesystem::path& model, const ExperimentConfig& config, const OtherData& other);
// A ConfigError unless the ids of the data mean what the model learned that they mean.
void require_tokens_of_run(const std::filesystem::path& model, const Dataset& data);

// What to know of sequences of so many tokens where training had shorter ones; empty if there is nothing.
std::string note_of_length(const ExperimentConfig& config, std::int64_t longest);

// As the option --precision says, or as trained if it is empty.
MatmulPrecision chosen_precision(const std::string& option, const ExperimentConfig& config);

}  // namespace routing
