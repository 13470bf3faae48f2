#include "routing/data/sources/byte_corpus.h"

#include "routing/core/error.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <new>
#include <string>
#include <zlib.h>

namespace routing {
namespace {

constexpr int kGzipOnly = 16;  // added to zlib's window bits
constexpr std::size_t kLeastCapacity = std::size_t{1} << 12U;
constexpr std::size_t kMostFirstCapacity = std::size_t{1} << 20U;
constexpr std::size_t kUsualRatio = 4;  // of texts

bool is_compressed(const std::filesystem::path& path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return extension == ".gz" || extension == ".dz";
}

MappedFile mapped_with_bytes(const std::filesystem::path& path) {
  MappedFile file(path);
  require<FileError>(file.size() > 0, path.string(), ": has 0 bytes; name a file with something in it");
  return file;
}

std::span<const std::uint8_t> numbers_of(const MappedFile& file) {
  return {reinterpret_cast<const std::uint8_t*>(file.bytes().data()), file.size()};
}

[[noreturn]] void throw_damaged(const std::filesystem::path& path, const std::string& what) {
  throw FileError(path.string() + ": cannot be decompressed: " + what +
                  "; fetch it again, or rename it if it is not gzip");
}

// One stream of zlib, which counts in 32 bits: input and output go through it in pieces.
class Inflater {
 public:
  Inflater(std::span<const std::uint8_t> input, const std::filesystem::path& path) : input_(input), path_(path) {
    require<Error>(inflateInit2(&stream_, MAX_WBITS + kGzipOnly) == Z_OK, path.string(),
                   ": zlib could not be started; free some memory");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  std::vector<std::uint8_t> all_members() {
    do {
      append_member();
      inflateReset(&stream_);
    } while (more_members());
    output_.resize(used_);
    output_.shrink_to_fit();
    return std::move(output_);
  }

 private:
  void append_member() {
    int status = Z_OK;
    while (status != Z_STREAM_END) {
      if (output_.size() == used_) output_.resize(std::max(first_capacity(), 2 * output_.size()));
      const uInt offered = piece(input_.size() - consumed_);
      const uInt space = piece(output_.size() - used_);
      // zlib does not write to its input; its interface only says so if ZLIB_CONST is defined.
      stream_.next_in = const_cast<Bytef*>(input_.data() + consumed_);
      stream_.avail_in = offered;
      stream_.next_out = output_.data() + used_;
      stream_.avail_out = space;
      status = inflate(&stream_, Z_NO_FLUSH);
      consumed_ += offered - stream_.avail_in;
      used_ += space - stream_.avail_out;
      if (status == Z_MEM_ERROR) throw std::bad_alloc();
      // No progress possible: the output has space, so the input has ended too early.
      if (status == Z_BUF_ERROR) throw_damaged(path_, "it ends in the middle of its compressed data");
      if (status != Z_OK && status != Z_STREAM_END) {
        throw_damaged(path_, std::string(stream_.msg != nullptr ? stream_.msg : "unknown format") + " near byte " +
                                 std::to_string(consumed_));
      }
    }
  }

  std::size_t first_capacity() const {
    return std::clamp(kUsualRatio * input_.size(), kLeastCapacity, kMostFirstCapacity);
  }

  bool more_members() const {
    const auto rest = input_.subspan(consumed_);
    return std::any_of(rest.begin(), rest.end(), [](std::uint8_t byte) { return byte != 0; });
  }

  static uInt piece(std::size_t size) {
    return static_cast<uInt>(std::min<std::size_t>(size, std::numeric_limits<uInt>::max()));
  }

  std::span<const std::uint8_t> input_;
  const std::filesystem::path& path_;
  std::size_t consumed_ = 0;
  std::vector<std::uint8_t> output_;
  std::size_t used_ = 0;
  z_stream stream_ = {};
};

std::vector<std::uint8_t> decompressed(const std::filesystem::path& path) {
  const MappedFile file = mapped_with_bytes(path);
  std::vector<std::uint8_t> bytes;
  try {
    bytes = Inflater(numbers_of(file), path).all_members();
  } catch (const std::bad_alloc&) {
    throw FileError(path.string() + ": does not fit into memory when decompressed (" + std::to_string(file.size()) +
                    " bytes compressed); decompress it to a file and name that, it is not loaded as a whole");
  }
  require<FileError>(!bytes.empty(), path.string(), ": holds 0 bytes when decompressed; name one with something in it");
  return bytes;
}

}  // namespace

ByteCorpus::ByteCorpus(const std::filesystem::path& path) : path_(path) {
  if (is_compressed(path)) {
    storage_ = decompressed(path);
  } else {
    storage_ = mapped_with_bytes(path);
  }
}

std::span<const std::uint8_t> ByteCorpus::bytes() const {
  if (const auto* const mapped = std::get_if<MappedFile>(&storage_)) return numbers_of(*mapped);
  return std::get<std::vector<std::uint8_t>>(storage_);
}

std::span<const std::uint8_t> ByteCorpus::part(const SplitBounds& bounds) const {
  require<InputError>(0 <= bounds.begin && bounds.begin <= bounds.end && bounds.end <= size(), path_.string(),
                      ": bytes ", bounds.begin, " to ", bounds.end, " were asked for, but there are ", size());
  return bytes().subspan(static_cast<std::size_t>(bounds.begin), static_cast<std::size_t>(bounds.size()));
}

}  // namespace routing
