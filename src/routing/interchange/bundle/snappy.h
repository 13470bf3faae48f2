// Snappy's block format, unpacked: older versions of TensorFlow pack the index of a checkpoint where that makes it
// smaller. Knows no torch.
//
//   the length as a varint; then pieces, told by the two lowest bits of a byte: 0 bytes as they are, 1 to 3 a copy of
//   bytes that were made before, with an offset of 11, 16 or 32 bits
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace routing {

// Throws a FileError that begins with `where` if the bytes are no such block, name bytes outside of it, or make more
// than 64 MiB.
std::string snappy_unpacked(std::span<const std::byte> packed, const std::string& where);

}  // namespace routing
