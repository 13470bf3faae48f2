// What a product of bfloat16 matrices is. Included first by the levels that have bfloat16 instructions; each then
// defines
//   kDepthUnit                   products sum over multiples of so many numbers
//   kChainsPairs                 a sum is a chain over pairs of numbers, each step of it _mm512_dpbf16_ps
//   struct Session               made before a block's first product, destroyed after its last
//   template <bool kAdd> void multiply(const Product&)
//                                c[r][x] = sum over t of a[r][t] b[t][x], added to what is in c if kAdd

using Half = std::uint16_t;  // the bits of a bfloat16
using Pair = std::uint32_t;  // two of them: the lower half comes first

struct Product {
  float* c = nullptr;
  std::int64_t c_stride = 0;
  const Half* a = nullptr;
  std::int64_t a_stride = 0;
  const Pair* b = nullptr;  // rows t and t + 1, woven
  std::int64_t b_stride = 0;
  std::int64_t rows = 0;     // 1 or a multiple of 16; there is room for 16 in any case
  std::int64_t columns = 0;  // a multiple of 16
  std::int64_t depth = 0;    // a multiple of kDepthUnit
};
