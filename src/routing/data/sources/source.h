// A data set as its users have it on disk, before it is tokenised: texts come out as pieces of text, images as values.
//
// Opening a source looks at names, sizes and headers only; what is wrong inside a file is found when it is read. Parts
// are named train, valid and test.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace routing {

struct SourcePart {
  std::string name;                          // train, valid or test
  std::vector<std::filesystem::path> files;  // in the order in which they are read
};

struct SourceFacts {
  std::string format;             // as data.format says it: "wikitext"
  std::vector<SourcePart> parts;  // those that are there, in the order train, valid, test; at least one
  // What a whole set has and this one has not, as one line: "1 of 5 train batches". Empty for a whole set, and for data
  // that are not a known set and so always whole.
  std::string missing;
  // What lay there and is not read, or is read although its name says otherwise, as one line: "3 binary files are left
  // out".
  std::string note = {};

  const SourcePart* part(std::string_view name) const;  // null if it is not there
};

// The part of this name; throws an InputError that names those that are there.
const SourcePart& require_part(const SourceFacts& facts, std::string_view name);

// Whether a file or a folder is there. What may not be looked at counts as absent: the system's own functions would
// throw errors that are not ours.
bool is_there(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);
// What can be read once only: "-", which is standard input, and a pipe with a name, such as the /dev/fd/63 that a shell
// makes of <(zcat x.gz).
bool is_pipe(const std::filesystem::path& path);
bool is_standard_input(const std::filesystem::path& path);

// Things as a list, "a, b"; without those that are empty.
std::string joined(const std::vector<std::string>& things);

// Where the text of a part goes. A document may come in several pieces, which are cut after line ends;
// ends_document stands at its last piece.
using TextSink = std::function<void(std::string_view text, bool ends_document)>;

class TextSource {
 public:
  virtual ~TextSource() = default;
  virtual const SourceFacts& facts() const = 0;
  // Every byte of the part's files, in order. Throws a FileError with path, what was expected and what was found.
  virtual void read(std::string_view part, const TextSink& sink) const = 0;
};

struct ImageShape {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t values() const { return 3 * height * width; }
  friend bool operator==(const ImageShape&, const ImageShape&) = default;
};

// One image: red, green and blue of every pixel, row after row.
using ImageSink = std::function<void(std::span<const std::uint8_t> values)>;

class ImageSource {
 public:
  virtual ~ImageSource() = default;
  virtual const SourceFacts& facts() const = 0;
  virtual ImageShape shape() const = 0;
  virtual std::int64_t images(std::string_view part) const = 0;  // how many read() will give
  virtual void read(std::string_view part, const ImageSink& sink) const = 0;
};

}  // namespace routing
