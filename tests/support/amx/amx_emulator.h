// Runs AMX machine code on processors without AMX, for tests.
//
//   const AmxEmulator emulator;
//   kernel_with_tiles(…);
//   if (emulator.installed()) EXPECT_GT(emulator.count(AmxOperation::multiply_bf16), 0);
//
// A processor without AMX stops at each tile instruction with SIGILL. While an emulator lives, the handler of that
// signal carries out this instruction and the tile instructions right behind it on tiles in memory
// (support/amx/amx_tiles.h), then goes on behind them: 1 to 10 us a signal (virtual machines are slow here) and 4 us a
// full multiplication. All other illegal instructions go to the handler that was there before.
//
// What a processor would refuse (a shape that does not fit, a tile without configuration) prints the reason and aborts.
// Built with AddressSanitizer, the memory of tile loads and stores is checked too.
//
// Threads   every thread has tiles of its own; make and destroy the emulator while no other thread uses tiles
// Limits    one emulator at a time; AVX-512 is not emulated: code that mixes both needs a processor with AVX-512
#pragma once

#include "support/amx/amx_instruction.h"

#include <cstdint>

namespace routing::support {

// Can tests with tile instructions run? No only where the processor has tiles and Linux refuses them: then some tile
// instructions work and some do not, and nobody can emulate.
bool can_run_amx();

// Has this thread configured its tiles and not released them? On every machine that can_run_amx(), for which the
// emulator must be there if it is needed.
bool tiles_are_configured();

class AmxEmulator {
 public:
  // On a processor with AMX: asks Linux for the tiles and leaves the rest to the processor.
  AmxEmulator();
  ~AmxEmulator();
  AmxEmulator(const AmxEmulator&) = delete;
  AmxEmulator& operator=(const AmxEmulator&) = delete;

  // False on a processor with AMX.
  bool installed() const { return installed_; }

  // Instructions that all threads together carried out since the construction; 0 if not installed().
  std::int64_t count(AmxOperation operation) const;

 private:
  bool installed_ = false;
};

}  // namespace routing::support
