// PG-19 (Rae et al. 2020): books of Project Gutenberg, as train/, validation/ and test/ with one ID.txt per book.
#pragma once

#include "routing/data/sources/document_files.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

namespace routing {

// The parts are train, valid and test; a book is a document, and books come sorted by the names of their files. The
// whole set has 28,602, 50 and 100 books; of others facts().missing says "34 of 28602 train books, 4 of 50 validation
// books", as far as that is so.
//
// Throws  FileError  no such folder, one of the three folders is not there or holds no .txt file, or a part has no text
std::unique_ptr<TextSource> open_pg19(const std::filesystem::path& folder, TextCheck check = TextCheck::utf8);

// Words of the whole set's part, as its authors count them: what a word-level perplexity divides by, whatever the model
// reads (docs/facts.md E4). Nothing for a part that is not train, valid or test.
std::optional<std::int64_t> official_pg19_words(std::string_view part);

}  // namespace routing
