// What `routing doctor` makes of what it found. Facts in, verdict out: nothing here looks at the machine, so every
// verdict can be tested on any machine.
#pragma once

#include "routing/config/words.h"
#include "routing/kernels/dispatch/cpu_features.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace routing {

enum class FindingStatus {
  ok,
  warning,  // works, but slower or smaller than it could be
  problem,  // should be put right
};
constexpr auto words_of(FindingStatus) {
  using enum FindingStatus;
  return std::to_array<Word<FindingStatus>>({{ok, "ok"}, {warning, "warning"}, {problem, "problem"}});
}

struct Finding {
  std::string check;  // "BLAS core"
  FindingStatus status = FindingStatus::ok;
  std::string found = {};
  std::string action = {};  // what to do; empty if there is nothing to do
};

// How many findings have this status.
std::int64_t count_status(const std::vector<Finding>& findings, FindingStatus status);

enum class BlasThreading { unknown, sequential, pthread, openmp };
constexpr auto words_of(BlasThreading) {
  using enum BlasThreading;
  return std::to_array<Word<BlasThreading>>(
      {{unknown, "unknown"}, {sequential, "sequential"}, {pthread, "pthread"}, {openmp, "OpenMP"}});
}

// The library that libtorch hands its matrix products to.
struct BlasFacts {
  std::string library;  // path of the file, empty if it could not be found
  std::string core;     // OpenBLAS: the processor its kernels were written for; empty for any other library
  BlasThreading threading = BlasThreading::unknown;
};

struct MatmulRates {
  std::int64_t size = 0;  // of the square matrices
  double blas_gflops = 0.0;
  double onednn_gflops = 0.0;
  bool results_agree = true;
};

struct ThreadFacts {
  int cores = 1;
  int threads = 1;  // of our own loops
};

struct MemoryFacts {
  std::int64_t total_bytes = 0;
  std::int64_t available_bytes = 0;
};

// Are OpenBLAS's kernels as new as the processor? It falls back to very old ones on processors younger than itself.
Finding judge_blas_core(const BlasFacts& blas, const CpuFeatures& cpu);

// Does the BLAS share its threads with OpenMP, as libtorch does?
Finding judge_blas_threading(const BlasFacts& blas);

// Is the BLAS as fast as oneDNN, measured?
Finding judge_matmul(const MatmulRates& rates, const CpuFeatures& cpu);

Finding judge_threads(const ThreadFacts& facts);
Finding judge_amx(AmxPermission permission, const CpuFeatures& cpu);

// `capability` is libtorch's own word: "AVX512", "AVX2", "DEFAULT", "NO AVX" and so on
Finding judge_vector_level(std::string_view capability, const CpuFeatures& cpu);

Finding judge_memory(const MemoryFacts& memory);

}  // namespace routing
