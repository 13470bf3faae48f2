#include "routing/data/formats.h"

#include "routing/config/text/path_list.h"
#include "routing/core/error.h"
#include "routing/core/files.h"
#include "routing/data/images/cifar10.h"
#include "routing/data/images/image_folder.h"
#include "routing/data/images/imagenet64.h"
#include "routing/data/images/shrunk_images.h"
#include "routing/data/prepared.h"
#include "routing/data/sources/pg19.h"
#include "routing/data/sources/text_files.h"
#include "routing/data/sources/text_tree.h"
#include "routing/data/sources/wikitext.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

namespace routing {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWikipediaDump = "<mediawiki";

bool is_image(DataFormat format) {
  return format == DataFormat::cifar10 || format == DataFormat::imagenet64 || format == DataFormat::images;
}

bool has_file(const fs::path& folder, const auto& matches) {
  std::error_code error;
  const fs::directory_iterator entries(folder, error);
  return std::any_of(begin(entries), end(entries),
                     [&](const fs::directory_entry& entry) { return matches(entry.path().filename().string()); });
}

auto ending_in(std::string_view end) {
  return [end](const std::string& name) { return name.ends_with(end); };
}

DataFormat format_of_file(const fs::path& path) {
  const std::string name = path.filename().string();
  if (name.ends_with(".npz")) return DataFormat::imagenet64;
  if (name.ends_with("_batch.bin") || (name.starts_with("data_batch_") && name.ends_with(".bin"))) {
    return DataFormat::cifar10;
  }
  std::ifstream file(path, std::ios::binary);
  std::string start(kWikipediaDump.size(), '\0');
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  return start == kWikipediaDump ? DataFormat::enwik8 : DataFormat::bytes;
}

DataFormat format_of_folder(const fs::path& path) {
  if (has_file(path, [](const std::string& name) { return name.starts_with("wiki.") && name.ends_with(".tokens"); })) {
    return DataFormat::wikitext;
  }
  if (has_file(path, [](const std::string& name) {
        return name == "test_batch.bin" || name == "data_batch_1.bin" || name == "cifar-10-batches-bin";
      })) {
    return DataFormat::cifar10;
  }
  if (has_file(path, [](const std::string& name) {
        return name == "train_64x64" || name == "valid_64x64" || name.ends_with("_data.npz") ||
               (name.starts_with("train_data_batch_") && name.ends_with(".npz"));
      })) {
    return DataFormat::imagenet64;
  }
  if (has_file(path, ending_in(".png"))) return DataFormat::images;
  const auto has_books = [&](const char* part) { return has_file(path / part, ending_in(".txt")); };
  if (has_books("train") && has_books("validation") && has_books("test")) return DataFormat::pg19;
  for (const char* part : {"train", "validation", "test", "valid", "val"}) {
    if (has_file(path / part, ending_in(".png"))) return DataFormat::images;
  }
  if (!texts_below(path).files.empty()) return DataFormat::text;
  throw FileError(path.string() +
                  ": holds no known data set: no wiki.*.tokens, data_batch_*.bin, train_64x64/, *.npz, *.png, nor any "
                  "text; name a file, or say what it is with data.format");
}

// A data set has its parts and its own way to be read; only texts can be put together.
DataFormat format_of_several(const std::vector<fs::path>& paths, DataFormat asked) {
  const auto is_text = [](DataFormat format) { return format == DataFormat::text || format == DataFormat::bytes; };
  require<ConfigError>(asked == DataFormat::automatic || is_text(asked), "data.format is ", to_string(asked),
                       ", which is one data set, but ", paths.size(),
                       " paths are named; name one, or set data.format=text to read all of them as texts");
  bool only_files = true;
  for (const fs::path& path : paths) {
    require<ConfigError>(!is_prepared(path), path.string(), ": is prepared and cannot be one of ", paths.size(),
                         " paths; name it alone, or prepare all of them together with  routing data prepare");
    const DataFormat format = detect_format(path);
    require<ConfigError>(asked != DataFormat::automatic || is_text(format), path.string(), ": is ", to_string(format),
                         ", a data set of its own, and cannot be one of ", paths.size(),
                         " paths; name it alone, or set data.format=text to read all of them as texts");
    only_files = only_files && format != DataFormat::text;
  }
  return asked != DataFormat::automatic ? asked : only_files ? DataFormat::bytes : DataFormat::text;
}

}  // namespace

DataFormat detect_format(const fs::path& path) {
  if (is_pattern(path)) return DataFormat::text;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  require<FileError>(fs::exists(status), path.string(), ": is not there; check the name");
  return fs::is_directory(status) ? format_of_folder(path) : format_of_file(path);
}

bool is_made_up(DataFormat format) {
  return format == DataFormat::copy || format == DataFormat::reverse || format == DataFormat::recall;
}

TokenKind token_kind(DataFormat format, TokenKind asked) {
  const TokenKind usual = is_image(format)                                           ? TokenKind::subpixels
                          : format == DataFormat::wikitext                           ? TokenKind::words
                          : format == DataFormat::pg19 || format == DataFormat::text ? TokenKind::subwords
                                                                                     : TokenKind::bytes;
  if (asked == TokenKind::automatic) return usual;
  require<ConfigError>(format != DataFormat::enwik8 || asked == TokenKind::bytes, "data.tokens is ", to_string(asked),
                       ", but enwik8 is a set of bytes; set data.format=text to read the file as text");
  require<ConfigError>(is_image(format) == (asked == TokenKind::subpixels), "data.tokens is ", to_string(asked),
                       ", but the data are ", to_string(format), ", which has ",
                       is_image(format) ? "subpixels" : "bytes, words or subwords",
                       "; set data.tokens=", to_string(usual));
  return asked;
}

AnySource open_source(const fs::path& path, const SourceOptions& options) {
  const TextCheck check = options.tokens == TokenKind::bytes ? TextCheck::none : TextCheck::utf8;
  std::unique_ptr<ImageSource> images;
  switch (options.format) {
    case DataFormat::wikitext:
      return open_wikitext(path, check);
    case DataFormat::pg19:
      return open_pg19(path, check);
    case DataFormat::cifar10:
      images = open_cifar10(path);
      break;
    case DataFormat::imagenet64:
      images = open_imagenet64(path);
      break;
    case DataFormat::images:
      images = open_image_folder(path);
      break;
    case DataFormat::copy:
    case DataFormat::reverse:
    case DataFormat::recall:
      throw ConfigError("data.format " + std::string(to_string(options.format)) +
                        " is made up and has no files; leave out data.path");
    case DataFormat::automatic:
    case DataFormat::bytes:
    case DataFormat::enwik8:
    case DataFormat::text:
      return open_text(path, check);
  }
  return shrink_images(std::move(images), options.image_size);
}

AnySource open_source(const DataInSight& data, std::int64_t image_size) {
  if (data.paths.size() > 1) {
    return open_texts(data.paths, data.tokens == TokenKind::bytes ? TextCheck::none : TextCheck::utf8);
  }
  return open_source(data.paths.front(), {.format = data.format, .tokens = data.tokens, .image_size = image_size});
}

DataInSight look_at_data(const DataConfig& config) {
  DataInSight data;
  for (const std::string& path : paths_in(config.path)) data.paths.emplace_back(path);
  require<ConfigError>(!data.paths.empty(), "no data are named; name a file or folder with `data.path`");
  for (const fs::path& path : data.paths) {
    require<FileError>(!is_pipe(path), path.string(),
                       ": is a pipe, which can be read only once, and that is too little here; write it to a file and "
                       "name that");
  }
  const bool alone = data.paths.size() == 1;
  data.format = !alone                                   ? format_of_several(data.paths, config.format)
                : config.format == DataFormat::automatic ? detect_format(data.paths.front())
                                                         : config.format;
  data.tokens = token_kind(data.format, config.tokens);
  data.is_own_shard = alone && data.tokens == TokenKind::bytes &&
                      (data.format == DataFormat::bytes || data.format == DataFormat::enwik8);
  return data;
}

const SourceFacts& facts_of(const AnySource& source) {
  return std::visit([](const auto& opened) -> const SourceFacts& { return opened->facts(); }, source);
}

}  // namespace routing
