// WikiText-103 and WikiText-2 (Merity et al. 2016), word level: a folder with wiki.train.tokens, wiki.valid.tokens and
// wiki.test.tokens.
#pragma once

#include "routing/data/sources/document_files.h"

#include <filesystem>
#include <memory>

namespace routing {

// Each file is one part and one document. A folder with all three files is whole; of others facts().missing says which
// are not there: "no wiki.train.tokens".
//
// Throws  FileError  no such folder, none of the three files in it, or one without bytes
std::unique_ptr<TextSource> open_wikitext(const std::filesystem::path& folder, TextCheck check = TextCheck::utf8);

}  // namespace routing
