// Files of images, made byte by byte, and what tests ask of sources.
#pragma once

#include "routing/data/sources/source.h"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>
#include <zlib.h>

namespace routing {

using Values = std::vector<std::uint8_t>;

// Every image of a part; fails no test by itself.
inline std::vector<Values> all_images(const ImageSource& source, std::string_view part) {
  std::vector<Values> images;
  source.read(part, [&](std::span<const std::uint8_t> values) { images.emplace_back(values.begin(), values.end()); });
  return images;
}

// CRC-32 of all values of a part, one image behind the other. For real data, whose checksums numpy and PIL computed.
inline std::uint32_t checksum(const ImageSource& source, std::string_view part) {
  uLong sum = 0;
  source.read(part, [&](std::span<const std::uint8_t> values) {
    sum = crc32(sum, values.data(), static_cast<uInt>(values.size()));
  });
  return static_cast<std::uint32_t>(sum);
}

// A folder of the real data, empty if it is not there.
inline std::filesystem::path real_images(const std::string& name) {
  const char* const data = std::getenv("ROUTING_TEST_DATA");
  if (data == nullptr || !std::filesystem::exists(std::filesystem::path(data) / name)) return {};
  return std::filesystem::path(data) / name;
}

inline std::string big_endian(std::uint32_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>((number >> shift) & 0xFFU);
  return bytes;
}

inline std::uint32_t crc_of(const std::string& bytes) {
  return static_cast<std::uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

// A chunk of a PNG file: length, kind, data, checksum of kind and data.
inline std::string png_chunk(const std::string& kind, const std::string& data) {
  return big_endian(static_cast<std::uint32_t>(data.size())) + kind + data + big_endian(crc_of(kind + data));
}

struct PngFacts {
  std::uint32_t height = 1;
  std::uint32_t width = 1;
  char bits = 8;
  char colours = 2;  // 0 grey, 2 red green blue, 3 palette, 4 grey and alpha, 6 red green blue alpha
  char interlaced = 0;
  std::string before_pixels = {};  // whole chunks: a palette, transparency
};

// What deflate makes of the bytes, in the zlib format.
inline std::string zlib_of(const std::string& bytes) {
  uLongf size = compressBound(static_cast<uLong>(bytes.size()));
  std::string packed(size, '\0');
  compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(bytes.data()),
           static_cast<uLong>(bytes.size()));
  packed.resize(size);
  return packed;
}

// A PNG file. The lines are those of the format: a filter byte (0 is none), then packed pixels.
inline std::string png_file(const PngFacts& facts, const std::string& lines) {
  const std::string header = big_endian(facts.width) + big_endian(facts.height) + facts.bits + facts.colours +
                             std::string(2, '\0') + facts.interlaced;
  return std::string("\x89PNG\r\n\x1a\n") + png_chunk("IHDR", header) + facts.before_pixels +
         png_chunk("IDAT", zlib_of(lines)) + png_chunk("IEND", "");
}

// An image of one colour.
inline std::string plain_png(std::uint32_t height, std::uint32_t width, char value) {
  std::string lines;
  for (std::uint32_t row = 0; row < height; ++row) lines += std::string(1, '\0') + std::string(3 * width, value);
  return png_file({.height = height, .width = width}, lines);
}

}  // namespace routing
