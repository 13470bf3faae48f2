#include "routing/storage/safetensors_header.h"

#include "routing/core/error.h"
#include "routing/storage/safetensors_json.h"

#include <algorithm>
#include <array>
#include <tuple>

namespace routing {
namespace {

constexpr std::uint64_t kLengthBytes = 8;

struct ValueBytes {
  std::string_view dtype;
  std::uint64_t bytes = 0;
};

constexpr auto kHeldDtypes = std::to_array<ValueBytes>({
    {"BOOL", 1},
    {"U8", 1},
    {"I8", 1},
    {"I16", 2},
    {"I32", 4},
    {"I64", 8},
    {"F16", 2},
    {"BF16", 2},
    {"F32", 4},
    {"F64", 8},
});

// Of the format, but not of this version of torch.
constexpr auto kOtherDtypes =
    std::to_array<std::string_view>({"U16", "U32", "U64", "C64", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ",
                                     "F8_E5M2FNUZ", "F6_E2M3", "F6_E3M2", "F4"});

constexpr const char* kDamaged = "; the file is damaged or no safetensors file, copy or write it anew";

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& what, const char* remedy = kDamaged) {
  throw FileError(path.string() + ": " + what + remedy);
}

std::uint64_t little_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t at = 0; at < bytes.size(); ++at) value |= std::to_integer<std::uint64_t>(bytes[at]) << (8 * at);
  return value;
}

std::string text_of(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (const std::int64_t side : shape) text += (text.size() == 1 ? "" : ", ") + std::to_string(side);
  return text + "]";
}

std::uint64_t value_bytes(const std::filesystem::path& path, const SafetensorsEntry& entry) {
  if (const auto bytes = safetensors_value_bytes(entry.dtype)) return *bytes;
  const bool of_the_format = std::find(kOtherDtypes.begin(), kOtherDtypes.end(), entry.dtype) != kOtherDtypes.end();
  const std::string tensor = "tensor " + quoted_name(entry.name) + " has dtype " + quoted_name(entry.dtype);
  refuse(path, tensor + (of_the_format ? ", which cannot be held here" : ", which is not one of the format"),
         "; convert it to one of BOOL U8 I8 I16 I32 I64 F16 BF16 F32 F64");
}

// The bytes of the whole tensor. Overflow counts even if another side is 0: strides are products of the other sides.
std::uint64_t tensor_bytes(const std::filesystem::path& path, const SafetensorsEntry& entry) {
  std::int64_t product = static_cast<std::int64_t>(value_bytes(path, entry));
  bool empty = false;
  for (const std::int64_t side : entry.shape) {
    empty = empty || side == 0;
    if (__builtin_mul_overflow(product, std::max<std::int64_t>(side, 1), &product)) {
      refuse(path, "tensor " + quoted_name(entry.name) + " of shape " + text_of(entry.shape) +
                       " has more values than can be counted");
    }
  }
  return empty ? 0 : static_cast<std::uint64_t>(product);
}

void check_sizes(const std::filesystem::path& path, const SafetensorsHeader& header) {
  for (const SafetensorsEntry& entry : header.entries) {
    const std::uint64_t expected = tensor_bytes(path, entry);
    const std::string range = "[" + std::to_string(entry.begin) + ", " + std::to_string(entry.end) + "]";
    if (entry.end < entry.begin) {
      refuse(path,
             "tensor " + quoted_name(entry.name) + " has data_offsets " + range + ", which end before they begin");
    }
    if (entry.end - entry.begin != expected) {
      refuse(path, "tensor " + quoted_name(entry.name) + " of dtype " + entry.dtype + " and shape " +
                       text_of(entry.shape) + " needs " + std::to_string(expected) + " bytes, but its data_offsets " +
                       range + " hold " + std::to_string(entry.end - entry.begin));
    }
  }
}

// Entries sorted by their bytes must follow each other and end with the file.
void check_tiling(const std::filesystem::path& path, const SafetensorsHeader& header, std::uint64_t data_size) {
  std::uint64_t next = 0;
  for (const SafetensorsEntry& entry : header.entries) {
    if (entry.begin != next) {
      refuse(path, "tensor " + quoted_name(entry.name) + " begins at byte " + std::to_string(entry.begin) +
                       " of the data, but the one before ends at " + std::to_string(next) +
                       (entry.begin < next ? ": they overlap" : ": there is a hole"));
    }
    next = entry.end;
  }
  if (next != data_size) {
    refuse(path, "the tensors fill " + std::to_string(next) + " bytes of data, but the file holds " +
                     std::to_string(data_size) +
                     (data_size < next ? ": it is cut short" : ": there are bytes too many"));
  }
}

}  // namespace

std::optional<std::uint64_t> safetensors_value_bytes(std::string_view dtype) {
  for (const ValueBytes& held : kHeldDtypes) {
    if (held.dtype == dtype) return held.bytes;
  }
  return std::nullopt;
}

SafetensorsHeader parse_safetensors_header(const std::filesystem::path& path, std::span<const std::byte> file) {
  if (file.size() < kLengthBytes) {
    refuse(path,
           "the file has " + std::to_string(file.size()) + " bytes, too few for the 8 bytes of the header's length");
  }
  const std::uint64_t length = little_endian(file.first(kLengthBytes));
  if (length > kMaxSafetensorsHeaderBytes) {
    refuse(path, "the header is said to have " + std::to_string(length) + " bytes, more than the allowed " +
                     std::to_string(kMaxSafetensorsHeaderBytes));
  }
  if (length > file.size() - kLengthBytes) {
    refuse(path, "the header is said to have " + std::to_string(length) + " bytes, but only " +
                     std::to_string(file.size() - kLengthBytes) + " follow");
  }
  const std::span<const std::byte> bytes = file.subspan(kLengthBytes, length);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  SafetensorsHeader header = parse_safetensors_json(text, [&](const std::string& what) { refuse(path, what); });
  header.data_begin = kLengthBytes + length;
  std::sort(header.entries.begin(), header.entries.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  check_sizes(path, header);
  check_tiling(path, header, file.size() - header.data_begin);
  return header;
}

std::string quoted_name(std::string_view name) {
  constexpr std::size_t kLongest = 100;
  std::string text = "'";
  for (const char letter : name.substr(0, kLongest)) {
    const auto code = static_cast<unsigned char>(letter);
    text += code < 0x20 || code == 0x7F ? '?' : letter;
  }
  return text + (name.size() > kLongest ? "…'" : "'");
}

}  // namespace routing
