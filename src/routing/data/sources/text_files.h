// Any text of one's own.
#pragma once

#include "routing/data/sources/document_files.h"

#include <filesystem>
#include <memory>
#include <vector>

namespace routing {

// a file                    one part called train that holds all of it, for the caller to cut; also compressed, as .gz
//                           or .dz
// a folder, or a pattern    every text below it (text_tree.h), one document per file, sorted by path. Files or first
// such as src/**/*.c        folders named after parts (ptb.train.txt, validation/) are these parts; otherwise all is
//                           one part called train
//
// Parts are taken from names only if every text has one (READMEs and licences do not count). Files named after a part,
// or a folder called train, beside texts that no name gives to a part are refused: which to learn from nobody can know.
// Folders called test or valid among others, as in a tree of sources, are read with the rest, and the facts say so.
//
// Several paths are one text, read in the order given, each to its end. Names give the parts of all of them together;
// there the names of the folders that were given, or hold files that were given, count too: train/ beside test/.
//
// Such data are not a known set, so nothing is ever missing.
//
// Throws  FileError  nothing is at a path, no text is in the folder, some but not all are named after parts, a part has
//                    no bytes, or a text is named twice: what is learned from must not be in what is held out
std::unique_ptr<TextSource> open_text(const std::filesystem::path& path, TextCheck check = TextCheck::utf8);
std::unique_ptr<TextSource> open_texts(const std::vector<std::filesystem::path>& paths,
                                       TextCheck check = TextCheck::utf8);

}  // namespace routing
