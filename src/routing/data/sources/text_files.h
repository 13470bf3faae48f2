// Any text of one's own.
#pragma once

#include "routing/data/sources/document_files.h"

#include <filesystem>
#include <memory>

namespace routing {

// a file                    one part called train that holds all of it, for the caller to cut; also compressed, as .gz
//                           or .dz
// a folder, or a pattern    every text below it (text_tree.h), one document per file, sorted by path. Files or first
// such as src/**/*.c        folders named after parts (ptb.train.txt, validation/) are these parts; otherwise all is
// one
//                           part called train
//
// Parts are taken from names only if every text has one (READMEs and licences do not count). Files named after a part,
// or a folder called train, beside texts that no name gives to a part are refused: which to learn from nobody can know.
// Folders called test or valid among others, as in a tree of sources, are read with the rest, and the facts say so.
//
// Such data are not a known set, so nothing is ever missing.
//
// Throws  FileError  nothing is at the path, no text is in the folder, some but not all are named after parts, or a
// part
//                    has no bytes
std::unique_ptr<TextSource> open_text(const std::filesystem::path& path, TextCheck check = TextCheck::utf8);

}  // namespace routing
