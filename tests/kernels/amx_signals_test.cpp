// What the emulator does with the signals that it takes, and with those that are not its own.
#include "routing/core/error.h"
#include "support/amx/amx_emulator.h"
#include "support/amx/amx_tiles.h"

#include <gtest/gtest.h>

#include <csignal>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

namespace routing::support::amx_signals_test {
namespace {

constexpr TileConfig kFull{.bytes = {64, 64, 64, 64, 64, 64, 64, 64}, .rows = {16, 16, 16, 16, 16, 16, 16, 16}};

void load_config(const TileConfig& config) {
  __asm__ volatile("ldtilecfg %0" : : "m"(config));
}

TEST(AmxEmulator, TilesAreConfiguredFromTheConfigurationToTheRelease) {
  if (!can_run_amx()) GTEST_SKIP() << "Linux refuses the tiles of this processor";
  const AmxEmulator emulator;
  EXPECT_FALSE(tiles_are_configured());
  load_config(kFull);
  EXPECT_TRUE(tiles_are_configured());
  __asm__ volatile("tilerelease");
  EXPECT_FALSE(tiles_are_configured());
  load_config(kFull);
  load_config({.palette = 0});
  EXPECT_FALSE(tiles_are_configured());
}

TEST(AmxEmulator, ThereIsOneAtATime) {
  if (!can_run_amx()) GTEST_SKIP() << "Linux refuses the tiles of this processor";
  {
    const AmxEmulator emulator;
    if (!emulator.installed()) GTEST_SKIP() << "a processor with tiles needs none";
    EXPECT_THROW(AmxEmulator(), InputError);
    EXPECT_FALSE(tiles_are_configured());
  }
  EXPECT_TRUE(AmxEmulator().installed());
}

volatile std::sig_atomic_t illegal_instructions = 0;

void step_over_ud2(int, siginfo_t*, void* context) {
  illegal_instructions = illegal_instructions + 1;
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP] += 2;
}

TEST(AmxEmulator, OtherIllegalInstructionsGoToTheHandlerBefore) {
  if (!can_run_amx()) GTEST_SKIP() << "Linux refuses the tiles of this processor";
  struct sigaction action {};
  struct sigaction at_start {};
  action.sa_sigaction = step_over_ud2;
  action.sa_flags = SA_SIGINFO;
  ASSERT_EQ(sigaction(SIGILL, &action, &at_start), 0);
  illegal_instructions = 0;
  {
    const AmxEmulator emulator;
    __asm__ volatile("ud2");
    EXPECT_EQ(illegal_instructions, 1);
    EXPECT_FALSE(tiles_are_configured());
    EXPECT_EQ(illegal_instructions, 1);
  }
  struct sigaction at_end {};
  ASSERT_EQ(sigaction(SIGILL, &at_start, &at_end), 0);
  EXPECT_EQ(at_end.sa_sigaction, step_over_ud2);
}

volatile std::sig_atomic_t sent_signals = 0;

void count_sent(int, siginfo_t* info, void*) {
  sent_signals = sent_signals + (info->si_code <= 0 ? 1 : 0);
}

// The signal arrives on the way back from the system call, when the thread is at a tile instruction.
TEST(AmxEmulator, ASentSignalGoesToTheHandlerBeforeEvenAtATileInstruction) {
  if (!can_run_amx()) GTEST_SKIP() << "Linux refuses the tiles of this processor";
  struct sigaction action {};
  struct sigaction at_start {};
  action.sa_sigaction = count_sent;
  action.sa_flags = SA_SIGINFO;
  ASSERT_EQ(sigaction(SIGILL, &action, &at_start), 0);
  sent_signals = 0;
  TileConfig config{.palette = 9};
  {
    const AmxEmulator emulator;
    long result = SYS_tgkill;
    __asm__ volatile("syscall\n\tsttilecfg %1"
                     : "+a"(result), "=m"(config)
                     : "D"(static_cast<long>(getpid())), "S"(syscall(SYS_gettid)), "d"(static_cast<long>(SIGILL))
                     : "rcx", "r11", "memory");
    EXPECT_EQ(result, 0);
  }
  sigaction(SIGILL, &at_start, nullptr);
  EXPECT_EQ(sent_signals, 1);
  EXPECT_EQ(config.palette, 0);
}

void with_emulator(void (*act)()) {
  std::signal(SIGILL, SIG_DFL);
  const AmxEmulator emulator;
  act();
}

TEST(AmxEmulatorDeathTest, WithoutAHandlerBeforeAnIllegalInstructionEndsTheProcess) {
  if (!can_run_amx()) GTEST_SKIP() << "Linux refuses the tiles of this processor";
  EXPECT_EXIT(with_emulator([] { __asm__ volatile("ud2"); }), ::testing::KilledBySignal(SIGILL), "");
  EXPECT_EXIT(with_emulator([] { raise(SIGILL); }), ::testing::KilledBySignal(SIGILL), "");
}

TEST(AmxEmulatorDeathTest, WhatAProcessorRefusesEndsTheProcessWithAReason) {
  if (!can_run_amx()) GTEST_SKIP() << "Linux refuses the tiles of this processor";
  const bool emulated = AmxEmulator().installed();
  EXPECT_DEATH(with_emulator([] { __asm__ volatile("tilezero %tmm1"); }),
               emulated ? "tilezero: #UD, tiles are not configured" : "");
  EXPECT_DEATH(with_emulator([] { load_config({.palette = 3}); }), emulated ? "ldtilecfg: #GP, palette 3" : "");
  EXPECT_DEATH(with_emulator([] {
                 load_config({.bytes = {64, 64, 64}, .rows = {3, 16, 16}});
                 __asm__ volatile("tdpbf16ps %tmm1, %tmm2, %tmm0");
               }),
               emulated ? "tdpbf16ps: #UD, 3 x 16 words" : "");
}

}  // namespace
}  // namespace routing::support::amx_signals_test
