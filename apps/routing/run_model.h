// What stands behind the RUN of a command: the model file, and the tokens that the model reads.
#pragma once

#include "routing/config/experiment.h"
#include "routing/data/tokenizer.h"
#include "routing/model/weights.h"
#include "routing/ops/precision.h"

#include <filesystem>
#include <memory>
#include <string>

namespace routing {

// The model file of a run's folder (of the checkpoint best, last or a step), of a checkpoint's folder, or the file
// itself. Throws a FileError that says what is missing.
std::filesystem::path model_file(const std::filesystem::path& run, const std::string& checkpoint);

// The tokeniser that a run keeps: beside the model, or two folders above it, where a checkpoint's run is. Empty if
// there is none of this kind.
std::filesystem::path kept_tokenizer(const std::filesystem::path& model, TokenKind kind);

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

// As the option --precision says, or as trained if it is empty.
MatmulPrecision chosen_precision(const std::string& option, const ExperimentConfig& config);

}  // namespace routing
