#include "routing/kernels/dispatch/onednn_limit.h"

#include "routing/kernels/dense/dense_primitives.h"
#include "routing/kernels/dispatch/cpu_features.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <oneapi/dnnl/dnnl.h>

namespace routing::onednn_limit_test {
namespace {

bool onednn_takes_tiles() {
  constexpr auto kTiles = static_cast<unsigned>(dnnl_cpu_isa_avx512_core_amx);
  return (static_cast<unsigned>(dnnl_get_effective_cpu_isa()) & kTiles) == kTiles;
}

TEST(OnednnLimit, TilesAreLeftOutExactlyWhereTheirPalettesAreHidden) {
  if (std::getenv("DNNL_MAX_CPU_ISA") != nullptr) GTEST_SKIP() << "DNNL_MAX_CPU_ISA is set";
  limit_onednn();
  const CpuFeatures& cpu = cpu_features();
  const bool may = cpu.avx512_bf16 && cpu.amx_bf16 && request_amx_permission() == AmxPermission::granted;
  EXPECT_EQ(onednn_takes_tiles(), may && cpu.amx_palette);
  EXPECT_FALSE(onednn_would_crash_on_tiles());
  EXPECT_EQ(kernels::multiplies_bfloat16(), cpu.avx512_bf16);
}

// The user wants all, or oneDNN was in use before: then products of bfloat16 must not reach it.
TEST(OnednnLimit, WhereItCannotBeSetProductsAreMadeOtherwise) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process in which nothing of oneDNN has run
  EXPECT_EXIT(
      {
        setenv("DNNL_MAX_CPU_ISA", "ALL", 1);
        limit_onednn();
        const bool hidden = cpu_features().amx_tile && !cpu_features().amx_palette;
        const bool right = onednn_would_crash_on_tiles() == (hidden && onednn_takes_tiles()) &&
                           (!onednn_would_crash_on_tiles() || !kernels::multiplies_bfloat16());
        std::exit(right && onednn_takes_tiles() == (cpu_features().amx_bf16 && cpu_features().avx512_bf16) ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace routing::onednn_limit_test
