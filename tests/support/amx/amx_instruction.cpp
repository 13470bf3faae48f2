#include "support/amx/amx_instruction.h"

#include <cstring>

namespace routing::support {
namespace {

// The bits of the VEX prefix, with the inverted ones put right.
struct VexPrefix {
  unsigned extend_reg = 0;    // 0 or 8, as the others
  unsigned extend_index = 0;  // X
  unsigned extend_base = 0;   // B
  unsigned vvvv = 0;          // 0 where no register is named
  unsigned mandatory = 0;     // 0 none, 1 0x66, 2 0xF3, 3 0xF2
};

struct ModRm {
  unsigned mod = 0;
  unsigned reg = 0;
  unsigned rm = 0;
  bool names_register() const { return mod == 3; }
};

class Decoder {
 public:
  explicit Decoder(const std::uint8_t* bytes) : bytes_(bytes) {}

  std::optional<AmxInstruction> instruction() {
    AmxInstruction found;
    std::uint8_t first = next();
    // Segments other than FS and GS start at zero in 64-bit code.
    for (; first == 0x64 || first == 0x65 || first == 0x26 || first == 0x2E || first == 0x36 || first == 0x3E;
         first = next()) {
      if (first == 0x64) found.address.segment = AmxAddress::Segment::fs;
      if (first == 0x65) found.address.segment = AmxAddress::Segment::gs;
      if (length_ > kLongestInstruction) return std::nullopt;
    }
    if (first != 0xC4 || !read_vex()) return std::nullopt;
    const unsigned opcode = next();
    if (opcode != 0x49 && opcode != 0x4B && opcode != 0x5C) return std::nullopt;
    const unsigned byte = next();
    modrm_ = {.mod = byte >> 6U, .reg = (byte >> 3U) & 7U, .rm = byte & 7U};

    const std::optional<AmxOperation> operation = operation_of(opcode);
    if (!operation || !operands_are_allowed(*operation)) return std::nullopt;
    found.operation = *operation;
    found.tile = static_cast<int>(modrm_.reg);
    if (*operation == AmxOperation::multiply_bf16) {
      found.left = static_cast<int>(modrm_.rm);
      found.right = static_cast<int>(vex_.vvvv);
    }
    if (!modrm_.names_register()) read_address(found.address);
    found.length = length_;
    return found;
  }

 private:
  static constexpr int kLongestInstruction = 15;

  std::uint8_t next() { return bytes_[length_++]; }

  // False if the prefix is not that of the instructions here: opcode map 0F38, W = 0, L = 0.
  bool read_vex() {
    const unsigned second = next();
    if ((second & 0x1FU) != 2) return false;
    const unsigned third = next();
    if ((third & 0x84U) != 0) return false;
    vex_ = {.extend_reg = (second & 0x80U) != 0 ? 0U : 8U,
            .extend_index = (second & 0x40U) != 0 ? 0U : 8U,
            .extend_base = (second & 0x20U) != 0 ? 0U : 8U,
            .vvvv = (~third >> 3U) & 15U,
            .mandatory = third & 3U};
    return true;
  }

  std::optional<AmxOperation> operation_of(unsigned opcode) const {
    const unsigned key = opcode << 4U | vex_.mandatory;
    if (modrm_.names_register()) {
      if (key == 0x490 && modrm_.reg == 0 && modrm_.rm == 0) return AmxOperation::release;
      if (key == 0x493 && modrm_.rm == 0) return AmxOperation::zero;
      if (key == 0x5C2) return AmxOperation::multiply_bf16;
      return std::nullopt;
    }
    if (key == 0x490 && modrm_.reg == 0) return AmxOperation::load_config;
    if (key == 0x491 && modrm_.reg == 0) return AmxOperation::store_config;
    // A tile needs the distance of its rows, which only the long form of an address (SIB) has a place for.
    if (modrm_.rm != 4) return std::nullopt;
    if (key == 0x4B1 || key == 0x4B3) return AmxOperation::load;
    if (key == 0x4B2) return AmxOperation::store;
    return std::nullopt;
  }

  bool operands_are_allowed(AmxOperation operation) const {
    if (operation == AmxOperation::multiply_bf16) {
      return vex_.extend_reg == 0 && vex_.extend_base == 0 && vex_.vvvv < 8;
    }
    return vex_.extend_reg == 0 && vex_.vvvv == 0;
  }

  void read_address(AmxAddress& address) {
    bool has_base = true;
    if (modrm_.rm == 4) {
      const unsigned sib = next();
      const unsigned index = ((sib >> 3U) & 7U) | vex_.extend_index;
      has_base = !((sib & 7U) == 5 && modrm_.mod == 0);
      if (has_base) address.base = static_cast<int>((sib & 7U) | vex_.extend_base);
      if (index != 4) {
        address.index = static_cast<int>(index);
        address.scale = 1 << (sib >> 6U);
      }
    } else if (modrm_.rm == 5 && modrm_.mod == 0) {
      has_base = false;
      address.base = AmxAddress::kNextInstruction;
    } else {
      address.base = static_cast<int>(modrm_.rm | vex_.extend_base);
    }
    if (modrm_.mod == 1) {
      address.displacement = static_cast<std::int8_t>(next());
    } else if (modrm_.mod == 2 || !has_base) {
      std::int32_t displacement = 0;
      std::memcpy(&displacement, bytes_ + length_, sizeof(displacement));
      length_ += static_cast<int>(sizeof(displacement));
      address.displacement = displacement;
    }
  }

  const std::uint8_t* bytes_;
  int length_ = 0;
  VexPrefix vex_;
  ModRm modrm_;
};

}  // namespace

const char* to_string(AmxOperation operation) {
  switch (operation) {
    case AmxOperation::load_config:
      return "ldtilecfg";
    case AmxOperation::store_config:
      return "sttilecfg";
    case AmxOperation::release:
      return "tilerelease";
    case AmxOperation::load:
      return "tileloadd";
    case AmxOperation::store:
      return "tilestored";
    case AmxOperation::zero:
      return "tilezero";
    case AmxOperation::multiply_bf16:
      return "tdpbf16ps";
  }
  return "unknown";
}

std::optional<AmxInstruction> decode_amx(const std::uint8_t* bytes) {
  return Decoder(bytes).instruction();
}

}  // namespace routing::support
