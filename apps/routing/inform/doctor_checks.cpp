#include "inform/doctor_checks.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <iomanip>
#include <optional>
#include <sstream>
#include <utility>

namespace routing {
namespace {

constexpr const char* kInstallOpenBlas = "apt-get install libopenblas0-openmp";

// oneDNN and a healthy BLAS are within a few tens of percent of each other on large products; twice as fast means that
// the BLAS runs the wrong kernels or too few threads.
constexpr double kTolerableRatio = 2.0;

constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0;
// The small presets need less; below this, the linker of our own build already swaps.
constexpr double kComfortableGibibytes = 2.0;

enum class VectorLevel { sse, avx, avx2, avx512 };
constexpr auto words_of(VectorLevel) {
  using enum VectorLevel;
  return std::to_array<Word<VectorLevel>>({{sse, "SSE"}, {avx, "AVX"}, {avx2, "AVX2"}, {avx512, "AVX-512"}});
}

VectorLevel level_of(const CpuFeatures& cpu) {
  if (cpu.avx512f && cpu.avx512bw && cpu.avx512dq && cpu.avx512vl) return VectorLevel::avx512;
  if (cpu.avx2 && cpu.fma) return VectorLevel::avx2;
  return cpu.avx ? VectorLevel::avx : VectorLevel::sse;
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return lower;
}

// The vector instructions in the kernels of an OpenBLAS core; absent for a core that came after this table.
std::optional<VectorLevel> level_of_core(std::string_view core) {
  constexpr auto kLevels = std::to_array<std::pair<std::string_view, VectorLevel>>({
      {"katmai", VectorLevel::sse},        {"coppermine", VectorLevel::sse},
      {"northwood", VectorLevel::sse},     {"prescott", VectorLevel::sse},
      {"banias", VectorLevel::sse},        {"atom", VectorLevel::sse},
      {"core2", VectorLevel::sse},         {"penryn", VectorLevel::sse},
      {"dunnington", VectorLevel::sse},    {"nehalem", VectorLevel::sse},
      {"athlon", VectorLevel::sse},        {"opteron", VectorLevel::sse},
      {"opteron_sse3", VectorLevel::sse},  {"barcelona", VectorLevel::sse},
      {"nano", VectorLevel::sse},          {"bobcat", VectorLevel::sse},
      {"sandybridge", VectorLevel::avx},   {"bulldozer", VectorLevel::avx},
      {"piledriver", VectorLevel::avx},    {"steamroller", VectorLevel::avx},
      {"excavator", VectorLevel::avx2},    {"haswell", VectorLevel::avx2},
      {"zen", VectorLevel::avx2},          {"skylakex", VectorLevel::avx512},
      {"cooperlake", VectorLevel::avx512}, {"sapphirerapids", VectorLevel::avx512},
  });
  const std::string name = lower_case(core);
  const auto* const entry =
      std::find_if(kLevels.begin(), kLevels.end(), [&](const auto& candidate) { return candidate.first == name; });
  if (entry == kLevels.end()) return std::nullopt;
  return entry->second;
}

// Names the core whose kernels suit this processor.
std::string choose_core_command(const CpuFeatures& cpu) {
  switch (level_of(cpu)) {
    case VectorLevel::avx512:
      return "export OPENBLAS_CORETYPE=SkylakeX";
    case VectorLevel::avx2:
      return "export OPENBLAS_CORETYPE=Haswell";
    case VectorLevel::avx:
      return "export OPENBLAS_CORETYPE=Sandybridge";
    case VectorLevel::sse:
      break;
  }
  return "export OPENBLAS_CORETYPE=Nehalem";
}

template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1);
  (out << ... << parts);
  return out.str();
}

}  // namespace

std::int64_t count_status(const std::vector<Finding>& findings, FindingStatus status) {
  return std::count_if(findings.begin(), findings.end(),
                       [&](const Finding& finding) { return finding.status == status; });
}

Finding judge_blas_core(const BlasFacts& blas, const CpuFeatures& cpu) {
  Finding finding{.check = "BLAS core"};
  if (blas.core.empty()) {
    finding.found = text(blas.library.empty() ? "a BLAS inside libtorch" : blas.library,
                         " is not OpenBLAS; the measured matrix product below decides");
    return finding;
  }
  const VectorLevel wanted = level_of(cpu);
  const std::optional<VectorLevel> level = level_of_core(blas.core);
  if (!level) {
    finding.found = text("OpenBLAS runs its ", blas.core, " kernels, which this program does not know; the measured ",
                         "matrix product below decides");
    return finding;
  }
  finding.found =
      text("OpenBLAS runs its ", blas.core, " kernels (", to_string(*level), ") on a CPU with ", to_string(wanted));
  if (*level >= wanted) return finding;
  // From SSE to AVX2 is a factor of four and more; from AVX2 to AVX-512 it is below two.
  finding.status = *level < VectorLevel::avx2 ? FindingStatus::problem : FindingStatus::warning;
  finding.action = text("before starting the program: ", choose_core_command(cpu));
  return finding;
}

Finding judge_blas_threading(const BlasFacts& blas) {
  Finding finding{.check = "BLAS threads"};
  switch (blas.threading) {
    case BlasThreading::openmp:
      finding.found = "OpenBLAS uses OpenMP, as libtorch does";
      return finding;
    case BlasThreading::unknown:
      finding.found = "the BLAS does not say how it makes its threads; nothing to check";
      return finding;
    case BlasThreading::pthread:
      finding.status = FindingStatus::problem;
      finding.found = "OpenBLAS makes its own pthreads, which fight with libtorch's OpenMP threads for the cores";
      finding.action = text("install the OpenMP build: ", kInstallOpenBlas);
      return finding;
    case BlasThreading::sequential:
      finding.status = FindingStatus::warning;
      finding.found = "this OpenBLAS was built for one thread only";
      finding.action = text("install the OpenMP build: ", kInstallOpenBlas);
      return finding;
  }
  return finding;
}

Finding judge_matmul(const MatmulRates& rates, const CpuFeatures& cpu) {
  Finding finding{.check = "matrix product"};
  const double ratio = rates.onednn_gflops / rates.blas_gflops;
  finding.found = text("fp32, ", rates.size, " cubed: BLAS ", rates.blas_gflops, " GFLOP/s, oneDNN ",
                       rates.onednn_gflops, " GFLOP/s, ratio ", ratio);
  if (!rates.results_agree) {
    finding.status = FindingStatus::problem;
    finding.found += "; the two results differ";
    finding.action =
        text("one of the libraries is broken on this CPU; reinstall both: ", kInstallOpenBlas, " libdnnl2");
  } else if (!(ratio <= kTolerableRatio)) {
    finding.status = FindingStatus::warning;
    finding.action = text("the BLAS is slow here; try ", choose_core_command(cpu), " or ", kInstallOpenBlas);
  }
  return finding;
}

Finding judge_threads(const ThreadFacts& facts) {
  Finding finding{.check = "threads"};
  finding.found = text("the program uses ", facts.threads, ", the process may use ", facts.cores,
                       facts.cores == 1 ? " core" : " cores");
  if (facts.threads < facts.cores) {
    finding.status = FindingStatus::warning;
    finding.action = text("cores stay idle; leave out --threads or give --threads ", facts.cores);
  } else if (facts.threads > facts.cores) {
    finding.status = FindingStatus::warning;
    finding.action = text("threads take turns on the cores; leave out --threads or give --threads ", facts.cores);
  }
  return finding;
}

Finding judge_amx(AmxPermission permission, const CpuFeatures& cpu) {
  Finding finding{.check = "AMX"};
  switch (permission) {
    case AmxPermission::not_on_this_cpu:
      finding.found = "this CPU has no tile registers; nothing to ask for";
      return finding;
    case AmxPermission::granted:
      finding.found = "this CPU has tile registers and Linux handed them over when the program asked";
      if (!cpu.amx_palette) {
        finding.status = FindingStatus::warning;
        finding.found += ", but CPUID does not name their palettes: attention uses them, oneDNN is kept to AVX-512";
        finding.action =
            "products of bfloat16 would be faster; let the host show CPUID leaves 0x1D and 0x1E to this machine";
      }
      return finding;
    case AmxPermission::refused:
      finding.status = FindingStatus::warning;
      finding.found = "this CPU has tile registers, but Linux refused them; slower instructions are used";
      finding.action =
          "run  uname -r : Linux 5.16 or newer is needed; in a container, allow the system call arch_prctl "
          "(docker run --security-opt seccomp=unconfined shows whether that is it)";
      return finding;
  }
  return finding;
}

Finding judge_vector_level(std::string_view capability, const CpuFeatures& cpu) {
  Finding finding{.check = "libtorch vectors"};
  const std::string name = lower_case(capability);
  const VectorLevel level = name.find("avx512") != std::string::npos ? VectorLevel::avx512
                            : name.find("avx2") != std::string::npos ? VectorLevel::avx2
                                                                     : VectorLevel::sse;
  const VectorLevel wanted = level_of(cpu);
  finding.found = text("libtorch runs its ", capability, " loops on a CPU with ", to_string(wanted));
  if (level >= wanted || wanted < VectorLevel::avx2) return finding;
  if (level == VectorLevel::avx2) {
    // libtorch chooses this itself, because some CPUs lower their clock for 512-bit vectors: worth a try, not a fault.
    finding.action = "may be faster: export ATEN_CPU_CAPABILITY=avx512 before starting the program";
    return finding;
  }
  finding.status = FindingStatus::warning;
  finding.action = "before starting the program: export ATEN_CPU_CAPABILITY=avx2";
  return finding;
}

Finding judge_memory(const MemoryFacts& memory) {
  Finding finding{.check = "memory"};
  const double available = static_cast<double>(memory.available_bytes) / kGibibyte;
  finding.found = text(available, " GiB available of ", static_cast<double>(memory.total_bytes) / kGibibyte, " GiB");
  if (available < kComfortableGibibytes) {
    finding.status = FindingStatus::warning;
    finding.action = text("close other programs, or keep models and batches small; ", kComfortableGibibytes,
                          " GiB are comfortable for the small presets");
  }
  return finding;
}

}  // namespace routing
