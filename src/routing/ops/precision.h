// How exactly products of float32 tensors are computed.
#pragma once

#include "routing/config/words.h"

#include <array>

namespace routing {

// bf16: factors of float32 products are rounded to bfloat16, sums and results stay float32. Double is never rounded.
enum class MatmulPrecision { fp32, bf16 };
constexpr auto words_of(MatmulPrecision) {
  using enum MatmulPrecision;
  return std::to_array<Word<MatmulPrecision>>({{fp32, "fp32"}, {bf16, "bf16"}});
}

}  // namespace routing
