#include "routing/kernels/dispatch/isa.h"

#include "routing/core/error.h"
#include "routing/kernels/dispatch/cpu_features.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>

namespace routing::kernels {
namespace {

std::atomic<unsigned>& assumed_levels() {
  static std::atomic<unsigned> levels{0};
  return levels;
}
unsigned bit(Isa isa) {
  return 1U << static_cast<unsigned>(isa);
}

bool runs_here(Isa isa) {
  const CpuFeatures& cpu = cpu_features();
  if ((assumed_levels() & bit(isa)) != 0) return true;
  switch (isa) {
    case Isa::generic:
      return true;
    case Isa::avx2:
      return cpu.avx2 && cpu.fma;
    case Isa::avx512:
      return cpu.avx2 && cpu.fma && cpu.avx512f && cpu.avx512bw && cpu.avx512dq && cpu.avx512vl;
    case Isa::avx512_bf16:
      return runs_here(Isa::avx512) && cpu.avx512_bf16;
    case Isa::amx:
      return runs_here(Isa::avx512_bf16) && cpu.amx_bf16 && request_amx_permission() == AmxPermission::granted;
  }
  return false;
}

void check_runs_here(Isa isa, std::string_view who) {
  require<ConfigError>(runs_here(isa), who, ": ", to_string(isa), " asked for, but this machine (",
                       cpu_features().brand, ") can run no more than ", to_string(supported_isas().back()),
                       "; ask for that or for nothing");
}

Isa isa_at_start() {
  const char* word = std::getenv("ROUTING_ISA");
  if (word == nullptr || *word == '\0') return supported_isas().back();
  const Isa isa = parse_word<Isa>(word, "ROUTING_ISA");
  check_runs_here(isa, "ROUTING_ISA");
  return isa;
}

std::atomic<Isa>& level_in_force() {
  static std::atomic<Isa> level{isa_at_start()};
  return level;
}

}  // namespace

const std::vector<Isa>& supported_isas() {
  static const std::vector<Isa> supported = [] {
    std::vector<Isa> isas;
    std::copy_if(kEvery<Isa>.begin(), kEvery<Isa>.end(), std::back_inserter(isas), runs_here);
    return isas;
  }();
  return supported;
}

Isa active_isa() {
  return level_in_force();
}

void assume_isa_runs(Isa isa) {
  assumed_levels() |= bit(isa);
}

bool includes(Isa level, Isa other) {
  return level >= other;
}

void set_active_isa(Isa isa) {
  check_runs_here(isa, "set_active_isa");
  level_in_force() = isa;
}

}  // namespace routing::kernels
