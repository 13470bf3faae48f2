#include "routing/data/sources/wikitext.h"

#include "routing/core/error.h"

#include <string>
#include <utility>

namespace routing {

std::unique_ptr<TextSource> open_wikitext(const std::filesystem::path& folder, TextCheck check) {
  require_folder(folder, "wiki.train.tokens, wiki.valid.tokens and wiki.test.tokens");
  SourceFacts facts{.format = "wikitext", .parts = {}, .missing = ""};
  for (const std::string name : {"train", "valid", "test"}) {
    const std::string file_name = "wiki." + name + ".tokens";
    const std::filesystem::path file = folder / file_name;
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(file, ignored)) {
      facts.missing += (facts.missing.empty() ? "no " : ", no ") + file_name;
      continue;
    }
    require<FileError>(std::filesystem::file_size(file, ignored) > 0, file.string(), ": has 0 bytes; fetch it again");
    facts.parts.push_back({.name = name, .files = {file}});
  }
  require<FileError>(!facts.parts.empty(), folder.string(),
                     ": has none of wiki.train.tokens, wiki.valid.tokens and wiki.test.tokens; "
                     "name the folder of WikiText-103 or WikiText-2 (word level, not raw)");
  return source_of_documents(std::move(facts), check);
}

}  // namespace routing
