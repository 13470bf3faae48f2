// Loops compiled for several instruction sets; active_isa() chooses when the program runs.
//
//   at_best_level([&]() __attribute__((always_inline)) { for (…) … });
//
// The body is inlined into one function a level, so the compiler vectorises it for each. For use in kernel sources
// only: the body must be a plain loop over pointers, without calls that are not inlined.
//
// Precision   levels may differ in the last bits, because fused multiply-add rounds once instead of twice
#pragma once

#include "routing/kernels/dispatch/isa.h"

namespace routing::kernels {

namespace simd_detail {

#if defined(__x86_64__)
template <class Body>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]] void with_avx512(const Body& body) {
  body();
}
template <class Body>
[[gnu::target("avx2,fma")]] void with_avx2(const Body& body) {
  body();
}
#endif

}  // namespace simd_detail

// Every caller passes a lambda, whose type is its own: no two files can share an instance of this.
template <class Body>
void at_best_level(const Body& body) {
#if defined(__x86_64__)
  const Isa isa = active_isa();
  if (includes(isa, Isa::avx512)) return simd_detail::with_avx512(body);
  if (includes(isa, Isa::avx2)) return simd_detail::with_avx2(body);
#endif
  body();
}

}  // namespace routing::kernels
