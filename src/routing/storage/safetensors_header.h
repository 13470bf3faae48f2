// The header of a safetensors file, read with distrust: nothing in it is used before it is checked.
//
//   u64 little-endian N | N bytes of JSON | data
//   {"__metadata__": {"key": "text", …}, "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …}
//
// Offsets count from the end of the header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace routing {

// The format's own limit.
inline constexpr std::uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;
inline constexpr std::string_view kSafetensorsMetadataKey = "__metadata__";

// Torch's limit on the number of dimensions that its operations take.
inline constexpr std::size_t kMaxTensorRank = 64;

struct SafetensorsEntry {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;  // of its bytes, from the end of the header
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of their bytes
  std::map<std::string, std::string> metadata;
  std::uint64_t data_begin = 0;  // from the start of the file
};

// Bytes of one value of the dtypes that we hold: BOOL U8 I8 I16 I32 I64 F16 BF16 F32 F64; nothing for any other.
std::optional<std::uint64_t> safetensors_value_bytes(std::string_view dtype);

// The header of the file with these bytes. Checks everything that can be checked without looking at values:
//   the length against the limit and the file; '{' first; UTF-8; one JSON object; no key twice at any level;
//   each entry exactly dtype, shape and data_offsets, of non-negative integers; shapes without overflow;
//   end - begin == values x bytes of one; the ranges fill the data without hole, overlap or rest;
//   metadata only of strings.
// A FileError begins with the path and names the tensor, what was expected and what was found.
SafetensorsHeader parse_safetensors_header(const std::filesystem::path& path, std::span<const std::byte> file);

// A name from a file in quotes, shortened and with '?' for what a terminal might obey.
std::string quoted_name(std::string_view name);

}  // namespace routing
