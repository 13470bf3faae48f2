// Tensors of other programs' files: what their numbers are and their shapes. Knows no torch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace routing {

enum class NumberType { float16, bfloat16, float32, float64, int8, int16, int32, int64, uint8, boolean };

std::uint64_t bytes_of(NumberType type);  // of one number
const char* name_of(NumberType type);     // as people read it: "float32"

using Dimensions = std::vector<std::int64_t>;

// "[3, 4]"; "[]" is a single number.
std::string dimensions_text(const Dimensions& dimensions);

// How many numbers a tensor of these dimensions has. Absent if one is negative or the product is above 2^62.
std::optional<std::uint64_t> count_of(const Dimensions& dimensions);

}  // namespace routing
