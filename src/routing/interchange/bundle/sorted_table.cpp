#include "routing/interchange/bundle/sorted_table.h"

#include "routing/core/error.h"
#include "routing/core/hash.h"
#include "routing/interchange/bundle/snappy.h"
#include "routing/interchange/bundle/wire_format.h"
#include "routing/interchange/values/byte_cursor.h"

#include <algorithm>

namespace routing {
namespace {

constexpr std::uint64_t kMagic = 0xdb4775248b80fb57;
constexpr std::size_t kFooterBytes = 48;
constexpr std::size_t kTrailerBytes = 5;      // packing and checksum after each block
constexpr std::size_t kBlockBytes = 262'144;  // TensorFlow's blocks; readers take any
constexpr std::size_t kEntriesPerRestart = 16;
constexpr std::uint8_t kSnappy = 1;
// An entry of a few bytes may share a key of any length with the one before. These bound what a file can make us keep:
// names of variables have some hundred bytes.
constexpr std::size_t kLongestKey = 4096;
constexpr std::size_t kMostEntries = 1'000'000;

struct BlockPlace {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

BlockPlace read_place(ByteCursor& cursor) {
  const std::uint64_t offset = cursor.varint();
  return {offset, cursor.varint()};
}

// The block itself, unpacked, once its trailer has been checked.
std::string checked_block(std::span<const std::byte> file, const BlockPlace& place, const std::string& where) {
  require<FileError>(place.offset <= file.size() && place.size <= file.size() - place.offset &&
                         kTrailerBytes <= file.size() - place.offset - place.size,
                     where, ": a block of ", place.size, " bytes at byte ", place.offset,
                     " lies outside of the file's ", file.size(), "; the file is damaged or cut off, fetch it again");
  const std::span<const std::byte> block = file.subspan(place.offset, place.size);
  ByteCursor trailer(file.subspan(place.offset + place.size, kTrailerBytes), where);
  const std::uint8_t packing = trailer.byte();
  const auto stored = static_cast<std::uint32_t>(trailer.fixed(4));
  const std::uint32_t computed = masked_crc32c(file.subspan(place.offset, place.size + 1));
  require<FileError>(stored == computed, where, ": the block at byte ", place.offset, " has checksum ", computed,
                     ", but ", stored, " was stored; the file is damaged, fetch it again");
  if (packing == kSnappy) return snappy_unpacked(block, where);
  require<FileError>(packing == 0, where, ": the block at byte ", place.offset, " is packed in the way ",
                     static_cast<int>(packing), ", but 0 (not at all) or 1 (Snappy) was expected; is this the .index ",
                     "of a checkpoint?");
  return {reinterpret_cast<const char*>(block.data()), block.size()};
}

// The places of whole keys at the end are not needed to read everything, but what they say must fit.
std::span<const std::byte> entries_of(std::span<const std::byte> block, const std::string& where) {
  require<FileError>(block.size() >= 4, where, ": a block has ", block.size(),
                     " bytes, but at least 4 were expected; the file is damaged, fetch it again");
  const std::uint64_t restarts = ByteCursor(block.last(4), where).fixed(4);
  require<FileError>(restarts <= (block.size() - 4) / 4, where, ": a block of ", block.size(), " bytes says that ",
                     restarts, " of its keys are whole; the file is damaged, fetch it again");
  return block.first(block.size() - 4 - 4 * restarts);
}

void append_entries(const std::string& block, const std::string& where, TableEntries& entries) {
  ByteCursor cursor(entries_of(std::as_bytes(std::span(block)), where), where);
  std::string key;
  while (cursor.left() > 0) {
    const std::uint64_t shared = cursor.varint();
    const std::uint64_t own = cursor.varint();
    const std::uint64_t value_bytes = cursor.varint();
    require<FileError>(shared <= key.size(), where, ": an entry shares ", shared, " bytes with the key before, which ",
                       "has ", key.size(), "; the file is damaged, fetch it again");
    require<FileError>(own <= kLongestKey - std::min<std::uint64_t>(shared, kLongestKey), where, ": a key has ", shared,
                       " and ", own, " bytes, but at most ", kLongestKey, " were expected; the file is a trap");
    require<FileError>(entries.size() < kMostEntries, where, ": has more than ", kMostEntries,
                       " entries; the file is a trap");
    key.resize(shared);
    key += cursor.text(own);
    require<FileError>(entries.empty() || entries.back().first < key, where, ": key '", key, "' does not come after '",
                       entries.empty() ? "" : entries.back().first, "'; the file is damaged, fetch it again");
    entries.emplace_back(key, cursor.text(value_bytes));
  }
}

class BlockWriter {
 public:
  void add(const std::string& key, const std::string& value) {
    std::size_t shared = 0;
    if (count_ % kEntriesPerRestart == 0) {
      restarts_.push_back(static_cast<std::uint32_t>(text_.size()));
    } else {
      const std::size_t most = std::min(key.size(), last_key_.size());
      while (shared < most && key[shared] == last_key_[shared]) ++shared;
    }
    append_varint(text_, shared);
    append_varint(text_, key.size() - shared);
    append_varint(text_, value.size());
    text_.append(key, shared);
    text_ += value;
    last_key_ = key;
    ++count_;
  }
  std::size_t size() const { return text_.size(); }
  bool empty() const { return count_ == 0; }
  const std::string& last_key() const { return last_key_; }

  // Appends the block and its trailer and begins anew.
  BlockPlace write(std::string& file) {
    if (restarts_.empty()) restarts_.push_back(0);
    for (const std::uint32_t restart : restarts_) append_fixed32(text_, restart);
    append_fixed32(text_, static_cast<std::uint32_t>(restarts_.size()));
    const BlockPlace place{file.size(), text_.size()};
    text_ += '\0';  // not compressed
    append_fixed32(text_, masked_crc32c(std::as_bytes(std::span(text_))));
    file += text_;
    *this = BlockWriter();
    return place;
  }

 private:
  std::string text_, last_key_;
  std::vector<std::uint32_t> restarts_;
  std::size_t count_ = 0;
};

std::string place_text(const BlockPlace& place) {
  std::string text;
  append_varint(text, place.offset);
  append_varint(text, place.size);
  return text;
}

}  // namespace

std::uint32_t masked_crc32c(std::span<const std::byte> bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return ((crc >> 15U) | (crc << 17U)) + 0xa282ead8U;
}

TableEntries read_sorted_table(std::span<const std::byte> file, const std::string& where) {
  require<FileError>(file.size() >= kFooterBytes, where, ": has ", file.size(), " bytes, but at least ", kFooterBytes,
                     " were expected; is this the .index of a TensorFlow checkpoint?");
  const std::span<const std::byte> footer = file.last(kFooterBytes);
  require<FileError>(ByteCursor(footer.last(8), where).fixed(8) == kMagic, where,
                     ": does not end as a sorted table does; is this the .index of a TensorFlow checkpoint, whole?");
  ByteCursor places(footer.first(kFooterBytes - 8), where);
  checked_block(file, read_place(places), where);  // the metaindex, which holds nothing
  const BlockPlace index_place = read_place(places);
  TableEntries index;
  append_entries(checked_block(file, index_place, where), where, index);
  TableEntries entries;
  for (const auto& [last_key, text] : index) {
    ByteCursor cursor(std::as_bytes(std::span(text)), where);
    const std::size_t before = entries.size();
    append_entries(checked_block(file, read_place(cursor), where), where, entries);
    // Keys ascend, so that no block with entries is read twice; one without could be, as often as the index names it.
    require<FileError>(entries.size() > before, where, ": the block that ends before '", last_key,
                       "' has no entries; the file is damaged, fetch it again");
    require<FileError>(entries.back().first <= last_key, where, ": key '", entries.back().first,
                       "' lies in a block that ends before '", last_key, "'; the file is damaged, fetch it again");
  }
  return entries;
}

std::string sorted_table(const TableEntries& entries) {
  std::string file;
  BlockWriter block, index;
  const auto finish_block = [&] {
    const std::string last_key = block.last_key();
    index.add(last_key, place_text(block.write(file)));
  };
  for (std::size_t place = 0; place < entries.size(); ++place) {
    const auto& [key, value] = entries[place];
    require<InputError>(place == 0 || entries[place - 1].first < key, "key '", key, "' does not come after '",
                        place == 0 ? "" : entries[place - 1].first, "'; sort the entries of the table by key");
    block.add(key, value);
    if (block.size() >= kBlockBytes) finish_block();
  }
  if (!block.empty()) finish_block();
  std::string footer = place_text(BlockWriter().write(file));
  footer += place_text(index.write(file));
  footer.resize(kFooterBytes - 8, '\0');
  append_fixed32(footer, static_cast<std::uint32_t>(kMagic));
  append_fixed32(footer, static_cast<std::uint32_t>(kMagic >> 32U));
  return file + footer;
}

}  // namespace routing
