// The bytes are what GNU as 2.40 writes for the text beside them.
#include "support/amx/amx_instruction.h"

#include <gtest/gtest.h>

#include <ostream>
#include <vector>

namespace routing::support::amx_instruction_test {
namespace {

using Bytes = std::vector<std::uint8_t>;

void expect_decoded(const Bytes& bytes, AmxInstruction expected, const char* text) {
  expected.length = static_cast<int>(bytes.size());
  const std::optional<AmxInstruction> decoded = decode_amx(bytes.data());
  ASSERT_TRUE(decoded.has_value()) << text;
  EXPECT_STREQ(to_string(decoded->operation), to_string(expected.operation)) << text;
  EXPECT_EQ(decoded->length, expected.length) << text;
  EXPECT_EQ(decoded->address.base, expected.address.base) << text;
  EXPECT_EQ(decoded->address.index, expected.address.index) << text;
  EXPECT_EQ(decoded->address.scale, expected.address.scale) << text;
  EXPECT_EQ(decoded->address.displacement, expected.address.displacement) << text;
  EXPECT_TRUE(*decoded == expected) << text;
}

constexpr int kRax = 0, kRcx = 1, kRdx = 2, kRbx = 3, kRsp = 4, kRbp = 5, kRsi = 6, kRdi = 7;

TEST(AmxInstruction, ConfigurationsAreReadWithTheirAddresses) {
  const auto load = [](const Bytes& bytes, const AmxAddress& address, const char* text) {
    expect_decoded(bytes, {.operation = AmxOperation::load_config, .address = address}, text);
  };
  load({0xc4, 0xe2, 0x78, 0x49, 0x07}, {.base = kRdi}, "ldtilecfg (%rdi)");
  load({0xc4, 0xe2, 0x78, 0x49, 0x44, 0x24, 0x40}, {.base = kRsp, .displacement = 0x40}, "ldtilecfg 0x40(%rsp)");
  load({0xc4, 0xe2, 0x78, 0x49, 0x85, 0xcc, 0xed, 0xff, 0xff}, {.base = kRbp, .displacement = -0x1234},
       "ldtilecfg -0x1234(%rbp)");
  load({0xc4, 0xe2, 0x78, 0x49, 0x05, 0x44, 0x33, 0x22, 0x11},
       {.base = AmxAddress::kNextInstruction, .displacement = 0x11223344}, "ldtilecfg 0x11223344(%rip)");
  load({0x64, 0xc4, 0xe2, 0x78, 0x49, 0x00}, {.base = kRax, .segment = AmxAddress::Segment::fs},
       "ldtilecfg %fs:(%rax)");
  load({0x65, 0xc4, 0x82, 0x78, 0x49, 0x44, 0xd1, 0xfc},
       {.base = 9, .index = 10, .scale = 8, .displacement = -4, .segment = AmxAddress::Segment::gs},
       "ldtilecfg %gs:-4(%r9,%r10,8)");
  load({0xc4, 0xe2, 0x78, 0x49, 0x04, 0x25, 0x00, 0x10, 0x00, 0x00}, {.displacement = 0x1000}, "ldtilecfg 0x1000");
  expect_decoded({0xc4, 0xc2, 0x79, 0x49, 0x45, 0x00}, {.operation = AmxOperation::store_config, .address{.base = 13}},
                 "sttilecfg (%r13)");
  expect_decoded({0xc4, 0xc2, 0x79, 0x49, 0x04, 0x24}, {.operation = AmxOperation::store_config, .address{.base = 12}},
                 "sttilecfg (%r12)");
}

TEST(AmxInstruction, TileLoadsAndStoresAreReadWithEveryFormOfAddress) {
  const auto load = [](const Bytes& bytes, int tile, const AmxAddress& address, const char* text) {
    expect_decoded(bytes, {.operation = AmxOperation::load, .tile = tile, .address = address}, text);
  };
  load({0xc4, 0xe2, 0x7b, 0x4b, 0x04, 0x08}, 0, {.base = kRax, .index = kRcx}, "tileloadd (%rax,%rcx,1)");
  load({0xc4, 0xe2, 0x7b, 0x4b, 0x5c, 0x55, 0x00}, 3, {.base = kRbp, .index = kRdx, .scale = 2},
       "tileloadd (%rbp,%rdx,2)");
  load({0xc4, 0x82, 0x7b, 0x4b, 0x7c, 0xa5, 0x00}, 7, {.base = 13, .index = 12, .scale = 4}, "tileloadd (%r13,%r12,4)");
  load({0xc4, 0x82, 0x7b, 0x4b, 0x6c, 0xec, 0x40}, 5, {.base = 12, .index = 13, .scale = 8, .displacement = 0x40},
       "tileloadd 0x40(%r12,%r13,8)");
  load({0xc4, 0xe2, 0x7b, 0x4b, 0x54, 0x2c, 0x80}, 2, {.base = kRsp, .index = kRbp, .displacement = -0x80},
       "tileloadd -0x80(%rsp,%rbp,1)");
  load({0xc4, 0x82, 0x7b, 0x4b, 0xa4, 0x07, 0x78, 0x56, 0x34, 0x12}, 4,
       {.base = 15, .index = 8, .displacement = 0x12345678}, "tileloadd 0x12345678(%r15,%r8,1)");
  load({0xc4, 0xe2, 0x7b, 0x4b, 0x0c, 0x5d, 0x00, 0x01, 0x00, 0x00}, 1,
       {.index = kRbx, .scale = 2, .displacement = 0x100}, "tileloadd 0x100(,%rbx,2)");
  load({0xc4, 0xc2, 0x7b, 0x4b, 0x34, 0x23}, 6, {.base = 11}, "tileloadd (%r11)");
  load({0xc4, 0xe2, 0x79, 0x4b, 0x14, 0x37}, 2, {.base = kRdi, .index = kRsi}, "tileloaddt1 (%rdi,%rsi,1)");
  expect_decoded({0xc4, 0x82, 0x7a, 0x4b, 0x34, 0x08},
                 {.operation = AmxOperation::store, .tile = 6, .address{.base = 8, .index = 9}},
                 "tilestored %tmm6, (%r8,%r9,1)");
  expect_decoded({0xc4, 0x82, 0x7a, 0x4b, 0x8c, 0x7e, 0x00, 0xf0, 0xff, 0xff},
                 {.operation = AmxOperation::store,
                  .tile = 1,
                  .address{.base = 14, .index = 15, .scale = 2, .displacement = -0x1000}},
                 "tilestored %tmm1, -0x1000(%r14,%r15,2)");
}

TEST(AmxInstruction, OperationsOnRegistersAreReadWithTheirTiles) {
  expect_decoded({0xc4, 0xe2, 0x78, 0x49, 0xc0}, {.operation = AmxOperation::release}, "tilerelease");
  expect_decoded({0xc4, 0xe2, 0x7b, 0x49, 0xf8}, {.operation = AmxOperation::zero, .tile = 7}, "tilezero %tmm7");
  expect_decoded({0xc4, 0xe2, 0x7b, 0x49, 0xc0}, {.operation = AmxOperation::zero, .tile = 0}, "tilezero %tmm0");
  const auto multiply = [](const Bytes& bytes, int tile, int left, int right, const char* text) {
    expect_decoded(bytes, {.operation = AmxOperation::multiply_bf16, .tile = tile, .left = left, .right = right}, text);
  };
  multiply({0xc4, 0xe2, 0x6a, 0x5c, 0xc1}, 0, 1, 2, "tdpbf16ps %tmm2, %tmm1, %tmm0");
  multiply({0xc4, 0xe2, 0x7a, 0x5c, 0xe7}, 4, 7, 0, "tdpbf16ps %tmm0, %tmm7, %tmm4");
  multiply({0xc4, 0xe2, 0x42, 0x5c, 0xee}, 5, 6, 7, "tdpbf16ps %tmm7, %tmm6, %tmm5");
}

TEST(AmxInstruction, OtherInstructionsAndReservedEncodingsAreNone) {
  const std::vector<std::pair<Bytes, const char*>> others{
      {{0x0f, 0x0b}, "ud2"},
      {{0xc4, 0xe2, 0x6b, 0x5e, 0xc1}, "tdpbssd, which is AMX-INT8"},
      {{0xc4, 0xe2, 0x71, 0x50, 0xd0}, "vpdpbusd"},
      {{0xc4, 0xe1, 0x78, 0x49, 0xc0}, "another opcode map"},
      {{0xc4, 0xe2, 0xf8, 0x49, 0xc0}, "W = 1"},
      {{0xc4, 0xe2, 0x7c, 0x49, 0xc0}, "L = 1"},
      {{0xc4, 0xe2, 0x70, 0x49, 0xc0}, "tilerelease that names a register"},
      {{0xc4, 0xe2, 0x78, 0x49, 0xc1}, "tilerelease with another operand"},
      {{0xc4, 0x62, 0x7b, 0x49, 0xc0}, "tilezero of tile 8"},
      {{0xc4, 0xe2, 0x2a, 0x5c, 0xc1}, "tdpbf16ps with tile 10 on the right"},
      {{0xc4, 0xc2, 0x6a, 0x5c, 0xc1}, "tdpbf16ps with tile 9 on the left"},
      {{0xc4, 0xe2, 0x7b, 0x4b, 0x00}, "tileloadd without a SIB byte"},
      {{0xc4, 0xe2, 0x73, 0x4b, 0x04, 0x08}, "tileloadd that names a third register"},
      {{0x67, 0xc4, 0xe2, 0x78, 0x49, 0x07}, "ldtilecfg (%edi)"},
  };
  for (const auto& [bytes, text] : others) EXPECT_FALSE(decode_amx(bytes.data()).has_value()) << text;
}

}  // namespace
}  // namespace routing::support::amx_instruction_test
