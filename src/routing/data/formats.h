// What lies at a path: which of the known data sets, and how it is opened.
#pragma once

#include "routing/config/experiment.h"
#include "routing/data/sources/source.h"

#include <filesystem>
#include <memory>
#include <variant>
#include <vector>

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

// What data.path names, as far as it can be seen without reading it. What data.format and data.tokens say is not looked
// for. Several paths are one text: bytes if all of them are files, otherwise as a folder of texts.
struct DataInSight {
  std::vector<std::filesystem::path> paths;
  DataFormat format = DataFormat::text;
  TokenKind tokens = TokenKind::bytes;
  bool is_own_shard = false;  // one file of bytes, which is read as it lies there
};
// Throws  ConfigError  no data are named, or a data set such as enwik8 or a folder of images is one of several
//         FileError    as detect_format(); or a pipe, which can be read once only
DataInSight look_at_data(const DataConfig& config);
AnySource open_source(const DataInSight& data, std::int64_t image_size);

const SourceFacts& facts_of(const AnySource& source);

}  // namespace routing
