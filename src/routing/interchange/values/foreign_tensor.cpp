#include "routing/interchange/values/foreign_tensor.h"

namespace routing {
namespace {

constexpr std::uint64_t kMostNumbers = std::uint64_t{1} << 62U;

}  // namespace

std::uint64_t bytes_of(NumberType type) {
  switch (type) {
    case NumberType::float64:
    case NumberType::int64:
      return 8;
    case NumberType::float32:
    case NumberType::int32:
      return 4;
    case NumberType::float16:
    case NumberType::bfloat16:
    case NumberType::int16:
      return 2;
    default:
      return 1;
  }
}

const char* name_of(NumberType type) {
  switch (type) {
    case NumberType::float16:
      return "float16";
    case NumberType::bfloat16:
      return "bfloat16";
    case NumberType::float32:
      return "float32";
    case NumberType::float64:
      return "float64";
    case NumberType::int8:
      return "int8";
    case NumberType::int16:
      return "int16";
    case NumberType::int32:
      return "int32";
    case NumberType::int64:
      return "int64";
    case NumberType::uint8:
      return "uint8";
    default:
      return "bool";
  }
}

std::string dimensions_text(const Dimensions& dimensions) {
  std::string text = "[";
  for (const std::int64_t size : dimensions) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

std::optional<std::uint64_t> count_of(const Dimensions& dimensions) {
  std::uint64_t count = 1;
  bool empty = false;
  for (const std::int64_t size : dimensions) {
    if (size < 0) return std::nullopt;
    empty = empty || size == 0;
  }
  if (empty) return 0;
  for (const std::int64_t size : dimensions) {
    if (count > kMostNumbers / static_cast<std::uint64_t>(size)) return std::nullopt;
    count *= static_cast<std::uint64_t>(size);
  }
  return count;
}

}  // namespace routing
