// SentencePiece without linking it: the plug-in of subwords_plugin.h, loaded on first use. Inside the room only; use
// subwords.h.
#pragma once

#include "routing/data/tokenizers/subwords_plugin.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace routing {

// The places where the plug-in may be, the likeliest first: beside the module that holds this code, where Python or the
// program has loaded one; beside the program, in the folder above it (where the build leaves the program, while tests
// are below it), and in ../lib/routing.
std::vector<std::filesystem::path> subwords_plugin_places();

// A model in the hands of SentencePiece.
//
// Throws  FileError  the plug-in is not there or does not load; it says where it was looked for
class LoadedSubwords {
 public:
  // An InputError with SentencePiece's words if it refuses the bytes.
  explicit LoadedSubwords(std::string_view model);
  // Appends the ids that SentencePiece gives the text. Safe to call from several threads.
  void encode(std::string_view text, std::vector<std::int32_t>& ids) const;

 private:
  struct Unload {
    void operator()(void* model) const;
  };
  std::unique_ptr<void, Unload> model_;
};

// The bytes of a model made from lines; a ConfigError with SentencePiece's words if it cannot.
std::string train_subwords(const SubwordsTraining& training);

}  // namespace routing
