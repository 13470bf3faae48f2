// A trained model as one folder or file that works anywhere: for a colleague. Knows no torch.
//
//   model.safetensors                the tensors of the checkpoint, byte for byte; its configuration names no path
//   config.toml                      the same configuration
//   vocabulary.txt, subwords.model   the tokeniser, where there is one
//   metrics.jsonl                    how the run went, where that is known
//   README.md                        the model card
//   SHA256SUMS                       of all of these, as `sha256sum -c` reads it
#pragma once

#include "lab/runs/model_header.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace routing {

struct ExportSource {
  ModelHeader model = {};
  std::filesystem::path tokenizer = {};  // empty if there is none
  std::filesystem::path metrics = {};    // empty if there are none
};

struct ExportTarget {
  std::filesystem::path path = {};  // a folder, or a file *.zip of a folder of its name
  bool replace = false;             // an earlier export that is there
};

struct ExportedFile {
  std::string name;
  std::int64_t bytes = 0;
};

bool is_zip(const std::filesystem::path& path);

// The tokens that the model reads, told by its configuration, its shape and its tokeniser rather than by its data,
// which may be gone; automatic for made-up data.
TokenKind exported_tokens(const ExportSource& source);

// The configuration without the paths of this machine, and with tokens that need no data to be known.
ExperimentConfig portable_config(const ExportSource& source);

// Writes everything to a sibling first: the target appears when all of it is there, and of an earlier export only the
// files above are replaced.
//
// Throws  ConfigError  the target is there and `replace` does not allow it, or it is something else than an export
//         FileError    the tokeniser is missing or another one, or a file cannot be read or written
std::vector<ExportedFile> export_model(const ExportSource& source, const std::string& card, const ExportTarget& target);

}  // namespace routing
