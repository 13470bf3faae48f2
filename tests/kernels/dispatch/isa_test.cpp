#include "routing/kernels/dispatch/isa.h"

#include "routing/core/error.h"
#include "routing/kernels/dispatch/cpu_features.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

namespace routing::kernels::isa_test {
namespace {

class IsaLevels : public ::testing::Test {
 protected:
  ~IsaLevels() override { set_active_isa(before_); }

 private:
  Isa before_ = active_isa();
};

TEST_F(IsaLevels, NamesAndLevelsAreInverse) {
  for (const Isa isa : {Isa::generic, Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx})
    EXPECT_EQ(parse_word<Isa>(to_string(isa), "ROUTING_ISA"), isa);
  try {
    parse_word<Isa>("avx513", "ROUTING_ISA");
    FAIL() << "avx513 was taken for a level";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'avx512'?"), std::string::npos) << error.what();
  }
}

TEST_F(IsaLevels, SupportedLevelsAreThoseOfTheProcessor) {
  const CpuFeatures& cpu = cpu_features();
  const auto& isas = supported_isas();
  EXPECT_EQ(isas.front(), Isa::generic);
  EXPECT_EQ(std::count(isas.begin(), isas.end(), Isa::avx2), cpu.avx2 && cpu.fma ? 1 : 0);
  EXPECT_LE(std::count(isas.begin(), isas.end(), Isa::avx512), cpu.avx512f ? 1 : 0);
  EXPECT_EQ(std::count(isas.begin(), isas.end(), Isa::avx512_bf16), cpu.avx512_bf16 ? 1 : 0);
  EXPECT_LE(std::count(isas.begin(), isas.end(), Isa::amx), cpu.amx_bf16 ? 1 : 0);
  EXPECT_TRUE(std::is_sorted(isas.begin(), isas.end()));
}

TEST_F(IsaLevels, ALevelIncludesItselfAndThoseBelow) {
  EXPECT_TRUE(includes(Isa::amx, Isa::avx512));
  EXPECT_TRUE(includes(Isa::avx512, Isa::avx512));
  EXPECT_FALSE(includes(Isa::avx512, Isa::avx512_bf16));
  EXPECT_FALSE(includes(Isa::generic, Isa::avx2));
}

TEST_F(IsaLevels, ASettingTakesAndAnUnsupportedOneIsRefusedNamingTheBest) {
  for (const Isa isa : {Isa::generic, Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx}) {
    const auto& isas = supported_isas();
    if (std::count(isas.begin(), isas.end(), isa) == 1) {
      set_active_isa(isa);
      EXPECT_EQ(active_isa(), isa);
      continue;
    }
    try {
      set_active_isa(isa);
      FAIL() << to_string(isa) << " was taken though this machine cannot run it";
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find(to_string(isas.back())), std::string::npos) << error.what();
    }
  }
}

// In a process of its own, because it cannot be taken back.
TEST(IsaAssumptionDeathTest, AnAssumedLevelCanBeSet) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        assume_isa_runs(Isa::amx);
        set_active_isa(Isa::amx);
        std::exit(active_isa() == Isa::amx ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

// The environment is read at the first use, so each word needs a process of its own.
TEST(IsaEnvironmentDeathTest, RoutingIsaForcesALevelAndRefusesUnknownOnes) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        setenv("ROUTING_ISA", "generic", 1);
        std::exit(active_isa() == Isa::generic ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      {
        setenv("ROUTING_ISA", "sse9", 1);
        try {
          active_isa();
          std::exit(1);
        } catch (const ConfigError&) {
          std::exit(0);
        }
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace routing::kernels::isa_test
