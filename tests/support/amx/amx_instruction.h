// Reads an AMX instruction from its bytes, as the processor would.
//
// Known are the instructions of AMX-TILE and AMX-BF16, in every encoding of 64-bit code except the address-size prefix
// (0x67), which compilers write only for 32-bit pointers.
#pragma once

#include <cstdint>
#include <optional>

namespace routing::support {

enum class AmxOperation {
  load_config,    // LDTILECFG
  store_config,   // STTILECFG
  release,        // TILERELEASE
  load,           // TILELOADD, TILELOADDT1: they differ in a hint to the cache only
  store,          // TILESTORED
  zero,           // TILEZERO
  multiply_bf16,  // TDPBF16PS
};
inline constexpr int kNumAmxOperations = 7;

// The mnemonic, in small letters.
const char* to_string(AmxOperation operation);

// base + index * scale + displacement; tile loads and stores take index * scale as the distance between rows.
// Registers have the numbers of the encoding: rax rcx rdx rbx rsp rbp rsi rdi r8 … r15.
struct AmxAddress {
  static constexpr int kNone = -1;
  static constexpr int kNextInstruction = -2;  // as a base: the address behind this instruction
  enum class Segment { none, fs, gs };

  int base = kNone;
  int index = kNone;
  int scale = 1;
  std::int64_t displacement = 0;
  Segment segment = Segment::none;

  bool operator==(const AmxAddress&) const = default;
};

struct AmxInstruction {
  AmxOperation operation = AmxOperation::release;
  int length = 0;        // in bytes
  int tile = 0;          // what is loaded, stored, zeroed or accumulated into
  int left = 0;          // of a multiplication: its rows are multiplied …
  int right = 0;         // … with the columns of this one
  AmxAddress address{};  // of operations on memory

  bool operator==(const AmxInstruction&) const = default;
};

// Nothing if this is no valid AMX instruction; encodings that the architecture reserves (a tile above 7, a set W or L,
// a register that an instruction does not take) are none. Reads no byte behind the instruction.
std::optional<AmxInstruction> decode_amx(const std::uint8_t* bytes);

}  // namespace routing::support
