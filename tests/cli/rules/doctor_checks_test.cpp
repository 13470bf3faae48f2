#include "inform/doctor_checks.h"

#include <gtest/gtest.h>

#include <string>

namespace routing::doctor_checks_test {
namespace {

CpuFeatures avx2_cpu() {
  CpuFeatures cpu;
  cpu.avx = cpu.avx2 = cpu.fma = true;
  return cpu;
}

CpuFeatures avx512_cpu() {
  CpuFeatures cpu = avx2_cpu();
  cpu.avx512f = cpu.avx512bw = cpu.avx512dq = cpu.avx512vl = true;
  return cpu;
}

BlasFacts openblas(const std::string& core, BlasThreading threading = BlasThreading::openmp) {
  return {"/usr/lib/libopenblas.so.0", core, threading};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(DoctorBlasCore, SseKernelsOnAnAvx512CpuAreAProblemAndTheRemedyNamesSkylakeX) {
  for (const char* core : {"Prescott", "PRESCOTT", "Core2", "Nehalem", "Sandybridge"}) {
    const Finding finding = judge_blas_core(openblas(core), avx512_cpu());
    EXPECT_EQ(finding.status, FindingStatus::problem) << core;
    EXPECT_TRUE(contains(finding.found, core)) << finding.found;
    EXPECT_TRUE(contains(finding.action, "export OPENBLAS_CORETYPE=SkylakeX")) << finding.action;
  }
}

TEST(DoctorBlasCore, SseKernelsOnAnAvx2CpuAreAProblemAndTheRemedyNamesHaswell) {
  const Finding finding = judge_blas_core(openblas("Prescott"), avx2_cpu());
  EXPECT_EQ(finding.status, FindingStatus::problem);
  EXPECT_TRUE(contains(finding.action, "export OPENBLAS_CORETYPE=Haswell")) << finding.action;
}

TEST(DoctorBlasCore, Avx2KernelsOnAnAvx512CpuAreOnlyAWarning) {
  for (const char* core : {"Haswell", "Zen"}) {
    const Finding finding = judge_blas_core(openblas(core), avx512_cpu());
    EXPECT_EQ(finding.status, FindingStatus::warning) << core;
    EXPECT_TRUE(contains(finding.action, "SkylakeX")) << finding.action;
  }
}

TEST(DoctorBlasCore, KernelsAsNewAsTheCpuAreFine) {
  EXPECT_EQ(judge_blas_core(openblas("SkylakeX"), avx512_cpu()).status, FindingStatus::ok);
  EXPECT_EQ(judge_blas_core(openblas("Cooperlake"), avx512_cpu()).status, FindingStatus::ok);
  EXPECT_EQ(judge_blas_core(openblas("Zen"), avx2_cpu()).status, FindingStatus::ok);
  EXPECT_EQ(judge_blas_core(openblas("Nehalem"), CpuFeatures{}).status, FindingStatus::ok);
}

TEST(DoctorBlasCore, UnknownCoresAndOtherLibrariesAreLeftToTheMeasurement) {
  for (const BlasFacts& blas : {openblas("ZEN9"), BlasFacts{"/usr/lib/libmkl.so", "", BlasThreading::unknown},
                                BlasFacts{"", "", BlasThreading::unknown}}) {
    const Finding finding = judge_blas_core(blas, avx512_cpu());
    EXPECT_EQ(finding.status, FindingStatus::ok) << finding.found;
    EXPECT_TRUE(contains(finding.found, "measured")) << finding.found;
  }
}

TEST(DoctorBlasThreads, PthreadBuildIsAProblemAndTheRemedyNamesThePackage) {
  const Finding finding = judge_blas_threading(openblas("SkylakeX", BlasThreading::pthread));
  EXPECT_EQ(finding.status, FindingStatus::problem);
  EXPECT_TRUE(contains(finding.action, "apt-get install libopenblas0-openmp")) << finding.action;
}

TEST(DoctorBlasThreads, OtherBuilds) {
  EXPECT_EQ(judge_blas_threading(openblas("Zen", BlasThreading::openmp)).status, FindingStatus::ok);
  EXPECT_EQ(judge_blas_threading(openblas("Zen", BlasThreading::unknown)).status, FindingStatus::ok);
  EXPECT_EQ(judge_blas_threading(openblas("Zen", BlasThreading::sequential)).status, FindingStatus::warning);
}

TEST(DoctorMatmul, BlasMoreThanTwiceAsSlowIsAWarningWithBothNumbers) {
  const Finding slow = judge_matmul({768, 10.0, 75.0, true}, avx512_cpu());
  EXPECT_EQ(slow.status, FindingStatus::warning);
  EXPECT_TRUE(contains(slow.found, "BLAS 10.0 GFLOP/s, oneDNN 75.0 GFLOP/s, ratio 7.5")) << slow.found;
  EXPECT_TRUE(contains(slow.action, "export OPENBLAS_CORETYPE=SkylakeX")) << slow.action;
  EXPECT_EQ(judge_matmul({768, 50.0, 99.0, true}, avx512_cpu()).status, FindingStatus::ok);
  EXPECT_EQ(judge_matmul({768, 99.0, 50.0, true}, avx512_cpu()).status, FindingStatus::ok);
}

TEST(DoctorMatmul, ResultsThatDifferAreAProblem) {
  EXPECT_EQ(judge_matmul({768, 50.0, 50.0, false}, avx2_cpu()).status, FindingStatus::problem);
}

TEST(DoctorThreads, OneThreadOfEightIsAWarningAndTheRemedyNamesTheOption) {
  const Finding finding = judge_threads({.cores = 8, .threads = 1});
  EXPECT_EQ(finding.status, FindingStatus::warning);
  EXPECT_TRUE(contains(finding.action, "--threads 8")) << finding.action;
}

TEST(DoctorThreads, MoreThreadsThanCoresAreAWarning) {
  const Finding finding = judge_threads({.cores = 2, .threads = 4});
  EXPECT_EQ(finding.status, FindingStatus::warning);
  EXPECT_TRUE(contains(finding.found, "uses 4")) << finding.found;
  EXPECT_TRUE(contains(finding.action, "--threads 2")) << finding.action;
}

TEST(DoctorThreads, AsManyAsCoresAreFine) {
  const Finding finding = judge_threads({.cores = 4, .threads = 4});
  EXPECT_EQ(finding.status, FindingStatus::ok);
  EXPECT_TRUE(finding.action.empty());
}

TEST(DoctorAmx, OnlyARefusalNeedsAction) {
  const CpuFeatures whole{.amx_tile = true, .amx_palette = true};
  EXPECT_EQ(judge_amx(AmxPermission::not_on_this_cpu, {}).status, FindingStatus::ok);
  EXPECT_EQ(judge_amx(AmxPermission::granted, whole).status, FindingStatus::ok);
  const Finding refused = judge_amx(AmxPermission::refused, whole);
  EXPECT_EQ(refused.status, FindingStatus::warning);
  EXPECT_TRUE(contains(refused.action, "uname -r")) << refused.action;
  EXPECT_TRUE(contains(refused.action, "arch_prctl")) << refused.action;
}

TEST(DoctorAmx, TilesWithoutPalettesAreAWarningThatNamesTheLeaf) {
  const Finding finding = judge_amx(AmxPermission::granted, {.amx_tile = true});
  EXPECT_EQ(finding.status, FindingStatus::warning);
  EXPECT_TRUE(contains(finding.found, "oneDNN is kept to AVX-512")) << finding.found;
  EXPECT_TRUE(contains(finding.action, "0x1D")) << finding.action;
}

TEST(DoctorVectors, Avx2LoopsOnAnAvx512CpuAreANoteThatNamesTheVariable) {
  const Finding finding = judge_vector_level("AVX2", avx512_cpu());
  EXPECT_EQ(finding.status, FindingStatus::ok);
  EXPECT_TRUE(contains(finding.action, "export ATEN_CPU_CAPABILITY=avx512")) << finding.action;
  EXPECT_TRUE(judge_vector_level("AVX512", avx512_cpu()).action.empty());
  EXPECT_TRUE(judge_vector_level("AVX2", avx2_cpu()).action.empty());
}

TEST(DoctorVectors, PlainLoopsOnAVectorCpuAreAWarning) {
  for (const char* capability : {"DEFAULT", "NO AVX", "default"}) {
    EXPECT_EQ(judge_vector_level(capability, avx512_cpu()).status, FindingStatus::warning) << capability;
    EXPECT_EQ(judge_vector_level(capability, CpuFeatures{}).status, FindingStatus::ok) << capability;
  }
}

TEST(DoctorMemory, LittleMemoryIsAWarning) {
  constexpr std::int64_t kGibibyte = std::int64_t{1} << 30;
  EXPECT_EQ(judge_memory({16 * kGibibyte, kGibibyte}).status, FindingStatus::warning);
  const Finding enough = judge_memory({16 * kGibibyte, 8 * kGibibyte});
  EXPECT_EQ(enough.status, FindingStatus::ok);
  EXPECT_TRUE(contains(enough.found, "8.0 GiB available of 16.0 GiB")) << enough.found;
}

TEST(DoctorFindings, AreCountedByStatus) {
  const std::vector<Finding> findings = {judge_amx(AmxPermission::refused, {}),
                                         judge_amx(AmxPermission::granted, {.amx_palette = true}),
                                         judge_blas_threading(openblas("Zen", BlasThreading::pthread))};
  EXPECT_EQ(count_status(findings, FindingStatus::problem), 1);
  EXPECT_EQ(count_status(findings, FindingStatus::warning), 1);
  EXPECT_EQ(count_status(findings, FindingStatus::ok), 1);
}

}  // namespace
}  // namespace routing::doctor_checks_test
