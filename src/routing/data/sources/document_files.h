// What every text source is made of: parts that are lists of files, each file one document.
#pragma once

#include "routing/data/sources/source.h"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

namespace routing {

enum class TextCheck {
  utf8,  // what is not UTF-8 is refused when it is read
  none,  // any bytes; for data.tokens=bytes
};

// A text goes to the sink in pieces of about this size.
inline constexpr std::size_t kTextPieceBytes = std::size_t{1} << 20U;

// Hands the text over in pieces cut after line ends: as many whole lines as fit into kTextPieceBytes, or one line that
// is longer. The pieces are views of the text. An empty text is one empty piece.
//
// Throws  FileError  path, offset and what to do, at the first byte that is not UTF-8, if that is checked; the pieces
//                    before it have been handed over
void read_in_pieces(std::string_view text, const std::filesystem::path& path, TextCheck check, const TextSink& sink);

// The source with these facts. Files are mapped one after the other, so memory does not grow with them; those that end
// in .gz or .dz are decompressed into memory (see ByteCorpus). read() of a part that is not there is a ConfigError.
std::unique_ptr<TextSource> source_of_documents(SourceFacts facts, TextCheck check);

// The .txt files of a folder, sorted by name; not those of folders in it, nor hidden ones.
std::vector<std::filesystem::path> text_files_in(const std::filesystem::path& folder);

// A FileError unless the path is a folder; expected says what it should hold.
void require_folder(const std::filesystem::path& folder, std::string_view expected);

}  // namespace routing
