// The files behind the RUN of a command. Knows no torch.
#pragma once

#include "routing/config/experiment.h"

#include <filesystem>
#include <string>

namespace routing {

// The model file of a run's folder (of the checkpoint best, last or a step), of a checkpoint's folder or an export, or
// the file itself. Throws a FileError that says what is missing.
std::filesystem::path model_file(const std::filesystem::path& run, const std::string& checkpoint);

// The tokeniser that a run keeps: beside the model, or two folders above it, where a checkpoint's run is. Empty if
// there is none of this kind.
std::filesystem::path kept_tokenizer(const std::filesystem::path& model, TokenKind kind);

}  // namespace routing
