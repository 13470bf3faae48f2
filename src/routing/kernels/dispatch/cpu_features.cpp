#include "routing/kernels/dispatch/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <array>
#include <cstdint>
#include <cstring>

namespace routing {
namespace {

#if defined(__x86_64__)

struct CpuidAnswer {
  std::uint32_t eax = 0;
  std::uint32_t ebx = 0;
  std::uint32_t ecx = 0;
  std::uint32_t edx = 0;
};

// All zero where the processor does not know the leaf.
CpuidAnswer cpuid(std::uint32_t leaf, std::uint32_t subleaf = 0) {
  CpuidAnswer answer;
  __get_cpuid_count(leaf, subleaf, &answer.eax, &answer.ebx, &answer.ecx, &answer.edx);
  return answer;
}

constexpr bool bit(std::uint64_t word, int index) {
  return ((word >> index) & 1U) != 0;
}

// The register sets that the operating system saves (XCR0); written as an instruction because the intrinsic would need
// a compiler flag for the whole file.
std::uint64_t saved_register_sets() {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<std::uint64_t>(high) << 32U) | low;
}

std::string brand_string() {
  constexpr std::uint32_t kFirstLeaf = 0x80000002U;
  constexpr std::uint32_t kNumLeaves = 3;
  std::array<char, kNumLeaves * sizeof(CpuidAnswer) + 1> text{};
  for (std::uint32_t index = 0; index < kNumLeaves; ++index) {
    const CpuidAnswer answer = cpuid(kFirstLeaf + index);
    std::memcpy(text.data() + index * sizeof(CpuidAnswer), &answer, sizeof(CpuidAnswer));
  }
  const std::string padded(text.data());
  const std::size_t first = padded.find_first_not_of(' ');
  if (first == std::string::npos) return "unknown";
  return padded.substr(first, padded.find_last_not_of(' ') - first + 1);
}

CpuFeatures read_features() {
  const CpuidAnswer basic = cpuid(1);
  const CpuidAnswer extended = cpuid(7);
  // Unknown subleaves may repeat other answers; leaf 7 says in eax how many it has.
  const CpuidAnswer extended_more = extended.eax >= 1 ? cpuid(7, 1) : CpuidAnswer{};
  const bool asks_allowed = bit(basic.ecx, 27);  // OSXSAVE: without it, xgetbv is an illegal instruction
  const std::uint64_t saved = asks_allowed ? saved_register_sets() : 0;
  const auto saves = [&](std::uint64_t sets) { return (saved & sets) == sets; };
  const bool ymm = saves(0x6);          // SSE and the upper halves of AVX
  const bool zmm = ymm && saves(0xe0);  // mask registers and both parts of AVX-512
  const bool tiles = saves(0x60000);    // tile configuration and tile data

  CpuFeatures features;
  features.brand = brand_string();
  features.avx = ymm && bit(basic.ecx, 28);
  features.avx2 = ymm && bit(extended.ebx, 5);
  features.fma = ymm && bit(basic.ecx, 12);
  features.f16c = ymm && bit(basic.ecx, 29);
  features.avx512f = zmm && bit(extended.ebx, 16);
  features.avx512bw = zmm && bit(extended.ebx, 30);
  features.avx512dq = zmm && bit(extended.ebx, 17);
  features.avx512vl = zmm && bit(extended.ebx, 31);
  features.avx512_vnni = zmm && bit(extended.ecx, 11);
  features.avx512_bf16 = zmm && bit(extended_more.eax, 5);
  features.avx512_fp16 = zmm && bit(extended.edx, 23);
  features.amx_tile = tiles && bit(extended.edx, 24);
  features.amx_bf16 = tiles && bit(extended.edx, 22);
  features.amx_int8 = tiles && bit(extended.edx, 25);
  features.amx_palette = features.amx_tile && cpuid(0x1d).eax >= 1;
  return features;
}

bool linux_hands_over_tiles() {
  // From the kernel's <asm/prctl.h>; Debian 12's has them, older ones do not.
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

#else

CpuFeatures read_features() {
  CpuFeatures features;
  features.brand = "unknown";
  return features;
}

bool linux_hands_over_tiles() {
  return false;
}

#endif

}  // namespace

const CpuFeatures& cpu_features() {
  static const CpuFeatures features = read_features();
  return features;
}

std::vector<std::pair<std::string_view, bool>> named_features(const CpuFeatures& features) {
  return {
      {"avx", features.avx},
      {"avx2", features.avx2},
      {"fma", features.fma},
      {"f16c", features.f16c},
      {"avx512f", features.avx512f},
      {"avx512bw", features.avx512bw},
      {"avx512dq", features.avx512dq},
      {"avx512vl", features.avx512vl},
      {"avx512_vnni", features.avx512_vnni},
      {"avx512_bf16", features.avx512_bf16},
      {"avx512_fp16", features.avx512_fp16},
      {"amx_tile", features.amx_tile},
      {"amx_bf16", features.amx_bf16},
      {"amx_int8", features.amx_int8},
  };
}

AmxPermission request_amx_permission() {
  static const AmxPermission permission = [] {
    if (!cpu_features().amx_tile) return AmxPermission::not_on_this_cpu;
    return linux_hands_over_tiles() ? AmxPermission::granted : AmxPermission::refused;
  }();
  return permission;
}

}  // namespace routing
