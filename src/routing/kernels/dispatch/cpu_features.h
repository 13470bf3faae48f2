// What the processor can do, as far as the operating system lets a program use it.
#pragma once

#include "routing/config/words.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace routing {

// A feature is true only if the processor has it AND the operating system saves its registers when it switches
// between programs; without the second, the first instruction of that set would end the program.
struct CpuFeatures {
  std::string brand = {};  // as the maker prints it, "unknown" if the processor does not say
  bool avx = false;
  bool avx2 = false;
  bool fma = false;
  bool f16c = false;
  bool avx512f = false;
  bool avx512bw = false;
  bool avx512dq = false;
  bool avx512vl = false;
  bool avx512_vnni = false;
  bool avx512_bf16 = false;
  bool avx512_fp16 = false;
  // The tile registers exist; a process must still ask for them, see request_amx_permission().
  bool amx_tile = false;
  bool amx_bf16 = false;
  bool amx_int8 = false;
  // CPUID says which palettes of tiles there are (leaf 0x1D). Some virtual machines have tiles and leave it out.
  bool amx_palette = false;
};

// Of the processor this process runs on, read once. All false where the processor is not an x86-64.
const CpuFeatures& cpu_features();

// Every feature that /proc/cpuinfo has a name for, by that name, in the order of the struct.
std::vector<std::pair<std::string_view, bool>> named_features(const CpuFeatures& features);

enum class AmxPermission {
  not_on_this_cpu,
  granted,
  refused,  // the processor has tiles, the kernel did not hand them over
};
constexpr auto words_of(AmxPermission) {
  using enum AmxPermission;
  return std::to_array<Word<AmxPermission>>(
      {{not_on_this_cpu, "not on this CPU"}, {granted, "granted"}, {refused, "refused"}});
}

// Asks Linux for the 8 KB of tile registers, which it gives only to processes that ask; all threads of the process
// then have them. Asks once, later calls return the first answer.
AmxPermission request_amx_permission();

}  // namespace routing
