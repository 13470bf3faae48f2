// What ordinary compressors make of the same bytes: the baselines every model of text should beat.
//
//   bits per byte = 8 * (bytes of the compressed file) / (bytes of the text)
//
// The file counts with its headers and checksum and without a name, as when the program reads its standard input. A
// compressor starts with no knowledge of the text, so a part that it compresses alone is harder for it than for a model
// that has read the rest.
#pragma once

#include <cstdint>
#include <span>

namespace routing {

// As gzip -9: zlib at level 9 (the program has its own variant of the algorithm; sizes differ by well under 1 %).
double gzip_bits_per_byte(std::span<const std::uint8_t> text);

// As xz -9: liblzma at preset 9 with CRC64. The dictionary is no larger than the text needs, which changes memory (ten
// times the dictionary) but hardly the size.
double xz_bits_per_byte(std::span<const std::uint8_t> text);

}  // namespace routing
