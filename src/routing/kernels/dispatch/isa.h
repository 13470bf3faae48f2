// Which instruction set the kernels use.
//
// The best one that the processor and the operating system support, unless the environment says ROUTING_ISA=generic,
// avx2, avx512, avx512_bf16 or amx. Results of different levels may differ in the last bits; results of one level never
// do.
#pragma once

#include "routing/config/words.h"

#include <array>
#include <vector>

namespace routing::kernels {

enum class Isa {
  generic,      // what every processor of the architecture has
  avx2,         // AVX2 and FMA
  avx512,       // AVX-512 F, BW, DQ, VL
  avx512_bf16,  // and its products of bfloat16
  amx,          // and tiles of bfloat16, if the kernel hands them over
};
constexpr auto words_of(Isa) {
  using enum Isa;
  return std::to_array<Word<Isa>>(
      {{generic, "generic"}, {avx2, "avx2"}, {avx512, "avx512"}, {avx512_bf16, "avx512_bf16"}, {amx, "amx"}});
}

// The levels that this machine can run, worst first; the last one is the best.
const std::vector<Isa>& supported_isas();

// The level in force. The first call reads ROUTING_ISA and throws a ConfigError that names the best level if this
// machine cannot run what it asks for.
Isa active_isa();
// Does this level have everything of that one?
bool includes(Isa level, Isa other);
// From now on this level counts as one that runs here, whatever the processor says. For tests that emulate it.
void assume_isa_runs(Isa isa);
// Takes another level from now on; the same ConfigError. For tests and benchmarks.
void set_active_isa(Isa isa);

}  // namespace routing::kernels
