#include "routing/kernels/dispatch/cpu_features.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace routing::cpu_features_test {
namespace {

// The text after the colon of the first line of /proc/cpuinfo with that name; empty if there is none.
std::string cpuinfo_line(const std::string& name) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(name, 0) == 0) return line.substr(line.find(':') + 1);
  }
  return "";
}

std::set<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::set<std::string> words;
  for (std::string word; stream >> word;) words.insert(word);
  return words;
}

TEST(CpuFeatures, AgreeWithWhatLinuxSaysInBothDirections) {
  const std::set<std::string> flags = words_of(cpuinfo_line("flags"));
  if (flags.empty()) GTEST_SKIP() << "/proc/cpuinfo has no flags line here, so there is nothing to compare with";
  for (const auto& [name, present] : named_features(cpu_features())) {
    EXPECT_EQ(present, flags.contains(std::string(name))) << name;
  }
}

TEST(CpuFeatures, BrandIsWhatLinuxPrints) {
  const std::string model = cpuinfo_line("model name");
  if (model.empty()) GTEST_SKIP() << "/proc/cpuinfo has no model name here, so there is nothing to compare with";
  // Linux trims blanks as well, and squeezes those inside.
  EXPECT_EQ(words_of(cpu_features().brand), words_of(model));
}

TEST(CpuFeatures, EveryFeatureHasItsOwnName) {
  std::set<std::string_view> names;
  for (const auto& [name, present] : named_features(cpu_features())) {
    EXPECT_TRUE(names.insert(name).second) << name << " is listed twice";
  }
}

TEST(CpuFeatures, ListFollowsTheStruct) {
  CpuFeatures features;
  for (const auto& [name, present] : named_features(features)) EXPECT_FALSE(present) << name;
  features.avx512_bf16 = true;
  for (const auto& [name, present] : named_features(features)) EXPECT_EQ(present, name == "avx512_bf16") << name;
}

TEST(CpuFeatures, WiderSetsNeverStandWithoutTheNarrowerOnesTheyBuildOn) {
  const CpuFeatures& features = cpu_features();
  EXPECT_TRUE(features.avx || !features.avx2);
  EXPECT_TRUE(features.avx2 || !features.avx512f);
  EXPECT_TRUE(features.avx512f || !features.avx512bw);
  EXPECT_TRUE(features.amx_tile || !features.amx_bf16);
  EXPECT_TRUE(features.amx_tile || !features.amx_palette);
}

TEST(AmxPermission, IsAskedForExactlyWhereTheProcessorHasTiles) {
  const bool has_tiles = cpu_features().amx_tile;
  EXPECT_EQ(request_amx_permission() != AmxPermission::not_on_this_cpu, has_tiles);
}

TEST(AmxPermission, SecondAnswerIsTheFirst) {
  EXPECT_EQ(request_amx_permission(), request_amx_permission());
}

TEST(AmxPermission, EveryAnswerHasItsOwnWords) {
  const std::set<std::string_view> words = {to_string(AmxPermission::not_on_this_cpu),
                                            to_string(AmxPermission::granted), to_string(AmxPermission::refused)};
  EXPECT_EQ(words.size(), 3U);
}

}  // namespace
}  // namespace routing::cpu_features_test
