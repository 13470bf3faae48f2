// Any text of one's own.
#pragma once

#include "routing/data/sources/document_files.h"

#include <filesystem>
#include <memory>

namespace routing {

// a file                                      one part called train that holds all of it, for the caller to cut; also
//                                             compressed, as .gz or .dz
// a folder with only train.txt, valid.txt     the parts that are there, each one document
// and test.txt, or some of these
// a folder with other .txt files              one part called train, one document per file, sorted by name
//
// Such data are not a known set, so nothing is ever missing.
//
// Throws  FileError  nothing is at the path, no .txt file is in the folder, some but not all are named after parts, or
//                    a part has no bytes
std::unique_ptr<TextSource> open_text(const std::filesystem::path& path, TextCheck check = TextCheck::utf8);

}  // namespace routing
