#include "routing/data/shard.h"

#include "routing/core/error.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace routing {
namespace {

static_assert(std::endian::native == std::endian::little, "shards are mapped as they are, little-endian");

constexpr std::string_view kMagic = "RTSHARD1";
constexpr std::size_t kHeaderBytes = 128;
constexpr std::size_t kHashed = 120;  // bytes of the header before its own checksum
constexpr std::int64_t kByteVocabulary = 256;
constexpr std::int64_t kLargestVocabulary = std::int64_t{1} << 31U;  // ids have 31 bits
constexpr std::size_t kAlwaysVerified = std::size_t{1}
                                        << 30U;  // bytes of ids that are checked whenever they are opened

using Header = std::array<std::byte, kHeaderBytes>;

template <class Number>
void put(Header& header, std::size_t place, Number value) {
  std::memcpy(header.data() + place, &value, sizeof value);
}

std::uint64_t get(const Header& header, std::size_t place) {
  std::uint64_t value = 0;
  std::memcpy(&value, header.data() + place, sizeof value);
  return value;
}

std::uint32_t bytes_of_id(std::int64_t vocabulary_size) {
  return vocabulary_size <= kByteVocabulary ? 1 : 4;
}

Header header_of(const ShardFacts& facts, std::uint64_t checksum) {
  Header header{};
  std::memcpy(header.data(), kMagic.data(), kMagic.size());
  put(header, 8, bytes_of_id(facts.vocabulary_size));
  put(header, 16, facts.tokens);
  put(header, 24, facts.record_length);
  put(header, 32, facts.documents);
  put(header, 40, facts.words);
  put(header, 48, facts.bytes);
  put(header, 56, facts.vocabulary_size);
  std::memcpy(header.data() + 64, facts.tokenizer_hash.data(), 16);
  put(header, 80, checksum);
  put(header, kHashed, xxhash64(std::span(header).first(kHashed)));
  return header;
}

// The header of a file, once it is known to be one of ours and whole.
Header checked_header(const std::filesystem::path& path, std::span<const std::byte> file) {
  const char* const remedy = "; prepare the data again with  routing data prepare";
  require<FileError>(file.size() >= kHeaderBytes, path.string(), ": has ", file.size(),
                     " bytes, but the header of a shard has ", kHeaderBytes, remedy);
  Header header;
  std::copy_n(file.begin(), kHeaderBytes, header.begin());
  require<FileError>(std::memcmp(header.data(), kMagic.data(), kMagic.size()) == 0, path.string(),
                     ": does not begin with ", kMagic, " and so is not a shard of tokens", remedy);
  const std::uint64_t found = xxhash64(std::span(header).first(kHashed));
  require<FileError>(found == get(header, kHashed), path.string(), ": the header has checksum ", hexadecimal(found),
                     ", but says it is ", hexadecimal(get(header, kHashed)), remedy);
  return header;
}

}  // namespace

ShardWriter::ShardWriter(const std::filesystem::path& path, std::int64_t vocabulary_size, std::string tokenizer_hash)
    : file_(path), id_bytes_(bytes_of_id(vocabulary_size)) {
  require<InputError>(vocabulary_size >= 1 && tokenizer_hash.size() == 16, path.string(), ": a shard of ",
                      vocabulary_size, " types with the tokeniser's hash '", tokenizer_hash,
                      "'; there is at least one type, and a hash has 16 digits");
  facts_.vocabulary_size = vocabulary_size;
  facts_.tokenizer_hash = std::move(tokenizer_hash);
  file_.write(Header{});
}

void ShardWriter::write(std::span<const std::int32_t> ids) {
  const auto wrong =
      std::find_if(ids.begin(), ids.end(), [&](std::int32_t id) { return id < 0 || id >= facts_.vocabulary_size; });
  require<InputError>(wrong == ids.end(), "token ", facts_.tokens + (wrong - ids.begin()), " is ",
                      wrong == ids.end() ? 0 : *wrong, ", but the vocabulary has ", facts_.vocabulary_size, " types");
  if (id_bytes_ == 1) {
    std::vector<std::uint8_t> narrow(ids.size());
    std::transform(ids.begin(), ids.end(), narrow.begin(),
                   [](std::int32_t id) { return static_cast<std::uint8_t>(id); });
    file_.write(std::as_bytes(std::span(narrow)));
    checksum_.update(std::as_bytes(std::span(narrow)));
  } else {
    file_.write(std::as_bytes(ids));
    checksum_.update(std::as_bytes(ids));
  }
  facts_.tokens += static_cast<std::int64_t>(ids.size());
}

void ShardWriter::write(std::span<const std::uint8_t> ids) {
  const std::vector<std::int32_t> wide(ids.begin(), ids.end());
  write(std::span<const std::int32_t>(wide));
}

ShardFacts ShardWriter::finish(ShardFacts counts) {
  counts.tokens = facts_.tokens;
  counts.vocabulary_size = facts_.vocabulary_size;
  counts.tokenizer_hash = facts_.tokenizer_hash;
  file_.rewrite_start(header_of(counts, checksum_.digest()));
  file_.commit();
  return counts;
}

Shard::Shard(const std::filesystem::path& path) : path_(path), file_(path) {
  const Header header = checked_header(path, file_.bytes());
  const auto number = [&](std::size_t place) { return static_cast<std::int64_t>(get(header, place)); };
  facts_ = {.tokens = number(16),
            .record_length = number(24),
            .documents = number(32),
            .words = number(40),
            .bytes = number(48),
            .vocabulary_size = number(56),
            .tokenizer_hash = std::string(reinterpret_cast<const char*>(header.data()) + 64, 16)};
  const bool are_counts =
      std::min({facts_.tokens, facts_.record_length, facts_.documents, facts_.words, facts_.bytes}) >= 0;
  require<FileError>(are_counts && facts_.vocabulary_size >= 1 && facts_.vocabulary_size <= kLargestVocabulary,
                     path.string(), ": the header says ", facts_.tokens, " ids of ", facts_.vocabulary_size,
                     " types in records of ", facts_.record_length, ", ", facts_.documents, " documents, ",
                     facts_.words, " words and ", facts_.bytes,
                     " bytes, which cannot be; prepare the data again with  routing data prepare");
  checksum_ = get(header, 80);
  const std::uint32_t id_bytes = bytes_of_id(facts_.vocabulary_size);
  const auto ids = file_.bytes().subspan(kHeaderBytes);
  require<FileError>(facts_.tokens >= 0 && ids.size() % id_bytes == 0 &&
                         ids.size() / id_bytes == static_cast<std::size_t>(facts_.tokens),
                     path.string(), ": has ", ids.size(), " bytes of ids, but the header says ", facts_.tokens,
                     " ids of ", id_bytes, "; prepare the data again with  routing data prepare");
  const auto count = static_cast<std::size_t>(facts_.tokens);
  if (id_bytes == 1) {
    tokens_ = std::span(reinterpret_cast<const std::uint8_t*>(ids.data()), count);
  } else {
    tokens_ = std::span(reinterpret_cast<const std::int32_t*>(ids.data()), count);
  }
  if (ids.size() <= kAlwaysVerified) verify();
}

std::string Shard::checksum() const {
  return hexadecimal(checksum_);
}

void Shard::verify() const {
  const std::uint64_t found = xxhash64(tokens_.bytes());
  require<FileError>(found == checksum_, path_.string(), ": the ids have checksum ", hexadecimal(found),
                     ", but the header says ", hexadecimal(checksum_),
                     "; the file is damaged, prepare the data again with  routing data prepare");
}

}  // namespace routing
