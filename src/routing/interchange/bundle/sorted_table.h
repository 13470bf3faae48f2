// A sorted table of texts in one file, as LevelDB and TensorFlow's checkpoints have it. Knows no torch.
//
//   blocks of entries, one block of nothing ("metaindex"), one block with the last key and the place of each block
//   ("index"), 48 bytes that say where these two are
//   block    entries; the places of entries whose keys are whole; their number; after it one byte for its packing (0:
//            none, 1: Snappy) and the masked CRC-32C of all that
//   entry    bytes shared with the key before, bytes of its own, bytes of the value, as varints; both texts
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace routing {

using TableEntries = std::vector<std::pair<std::string, std::string>>;  // keys and values, by key

// All entries. Throws a FileError that begins with `where` if a checksum does not fit, keys are not in order, anything
// lies outside of the file, or a block is packed otherwise than by Snappy.
TableEntries read_sorted_table(std::span<const std::byte> file, const std::string& where);

// The bytes of such a file. Keys must ascend; throws an InputError otherwise.
std::string sorted_table(const TableEntries& entries);

// CRC-32C as the format stores it, so that a checksum of bytes that hold checksums stays a good one.
std::uint32_t masked_crc32c(std::span<const std::byte> bytes);

}  // namespace routing
