// What lies at a path: which of the known data sets, and how it is opened.
#pragma once

#include "routing/config/experiment.h"
#include "routing/data/sources/source.h"

#include <filesystem>
#include <memory>
#include <variant>

namespace routing {

// By names in a folder and the first bytes of a file:
//   wiki.*.tokens             wikitext        data_batch_1.bin, test_batch.bin  cifar10
//   .txt files in train/,     pg19            train_64x64/, valid_64x64/, .npz  imagenet64
//   validation/ and test/                     .png files                        images
//   a file "<mediawiki …"     enwik8          any other file                    bytes
//   a folder with any other text, or a pattern such as src/**/*.c               text
// A FileError lists what was looked for if a folder holds none of it, or says that nothing is there.
DataFormat detect_format(const std::filesystem::path& path);

// Is it made up, so that there is no path?
bool is_made_up(DataFormat format);

// The tokens of a format where data.tokens says auto; a ConfigError for a kind that it cannot have.
TokenKind token_kind(DataFormat format, TokenKind asked);

using AnySource = std::variant<std::unique_ptr<TextSource>, std::unique_ptr<ImageSource>>;

struct SourceOptions {
  DataFormat format = DataFormat::text;  // not automatic
  TokenKind tokens = TokenKind::bytes;   // text must be UTF-8 unless it is read as bytes
  std::int64_t image_size = 0;           // images are shrunk to this height and width; 0 means as they are
};
AnySource open_source(const std::filesystem::path& path, const SourceOptions& options);
const SourceFacts& facts_of(const AnySource& source);

}  // namespace routing
