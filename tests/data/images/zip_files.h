// NumPy archives made byte by byte, also such as lie about themselves.
#pragma once

#include "data/images/image_files.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include <zlib.h>

namespace routing {

inline std::string little_endian(std::uint64_t number, int bytes) {
  std::string text;
  for (int index = 0; index < bytes; ++index) text += static_cast<char>((number >> (8 * index)) & 0xFFU);
  return text;
}

// What deflate makes of the bytes, without a frame, as zip archives have it: zlib's format has 2 bytes in front and a
// checksum of 4 behind.
inline std::string deflated(const std::string& bytes) {
  const std::string framed = zlib_of(bytes);
  return framed.substr(2, framed.size() - 6);
}

struct ZipEntry {
  std::string name = "data.npy";
  std::string content = {};
  bool deflate = false;
  std::optional<std::uint32_t> declared_size = {};      // instead of the true one
  std::optional<std::uint32_t> declared_packed = {};    // instead of the true size in the archive
  std::optional<std::uint32_t> declared_checksum = {};  // instead of the true one
  std::optional<std::uint16_t> declared_method = {};    // instead of 0 or 8
  std::uint16_t flags = 0;                              // 1 is encrypted
};

inline std::string zip_file(const std::vector<ZipEntry>& entries) {
  std::string file;
  std::string list;
  for (const ZipEntry& entry : entries) {
    const std::string packed = entry.deflate ? deflated(entry.content) : entry.content;
    const auto size = entry.declared_size.value_or(static_cast<std::uint32_t>(entry.content.size()));
    const auto method = entry.declared_method.value_or(static_cast<std::uint16_t>(entry.deflate ? 8 : 0));
    // Version needed, flags, method, time, date, checksum, both sizes, lengths of name and extra.
    const std::string common =
        little_endian(20, 2) + little_endian(entry.flags, 2) + little_endian(method, 2) + little_endian(0, 2) +
        little_endian(0x21, 2) + little_endian(entry.declared_checksum.value_or(crc_of(entry.content)), 4) +
        little_endian(entry.declared_packed.value_or(static_cast<std::uint32_t>(packed.size())), 4) +
        little_endian(size, 4) + little_endian(entry.name.size(), 2) + little_endian(0, 2);
    // Comment, disk, attributes, then where the local header is.
    list += "PK\x01\x02" + little_endian(20, 2) + common + std::string(10, '\0') + little_endian(file.size(), 4) +
            entry.name;
    file += "PK\x03\x04" + common + entry.name + packed;
  }
  const std::string end = "PK\x05\x06" + std::string(4, '\0') + little_endian(entries.size(), 2) +
                          little_endian(entries.size(), 2) + little_endian(list.size(), 4) +
                          little_endian(file.size(), 4) + std::string(2, '\0');
  return file + list + end;
}

// A .npy file with this dictionary in front of its numbers.
inline std::string npy_file(const std::string& dictionary, const std::string& numbers, char version = 1) {
  const std::string line = dictionary + "   \n";
  return std::string("\x93NUMPY") + version + '\0' + little_endian(line.size(), version == 1 ? 2 : 4) + line + numbers;
}

inline std::string npy_of(std::int64_t rows, std::int64_t columns, const std::string& numbers) {
  return npy_file("{'descr': '|u1', 'fortran_order': False, 'shape': (" + std::to_string(rows) + ", " +
                      std::to_string(columns) + "), }",
                  numbers);
}

}  // namespace routing
