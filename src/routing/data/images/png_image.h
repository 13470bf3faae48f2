// PNG files as images of 8-bit red, green and blue, and back.
//
// Values come as they are stored: no gamma, no colour profile. Grey images and those with a palette become red, green
// and blue; interlaced ones are read as well. An alpha channel is dropped if every pixel is opaque.
//
// Throws  FileError  as MappedFile, or the file is no PNG, is damaged or cut off anywhere (every checksum counts), has
//                    16 bits per channel, has a pixel that is not opaque, or claims more than kLargestPngSide rows or
//                    columns, or more of them than its bytes can hold. The last two are found before memory is taken.
#pragma once

#include "routing/data/images/image.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace routing {

inline constexpr std::int64_t kLargestPngSide = 8192;

Image read_png(const std::filesystem::path& path);
// Of a file that is in memory; messages begin with `origin`.
Image decode_png(std::span<const std::byte> file, const std::string& origin);

// What the file claims in front of its pixels; those may still be damaged.
ImageShape read_png_shape(const std::filesystem::path& path);

// Writes in one step (core/files.h). Throws InputError if the values do not fit the shape or the shape cannot be read
// back, FileError as AtomicFile.
void write_png(const std::filesystem::path& path, const Image& image);
// The bytes of such a file.
std::vector<std::uint8_t> encode_png(const Image& image, const std::string& origin);

}  // namespace routing
