#include "support/amx/amx_tiles.h"

#include "support/amx/tile_oracle.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace routing::support::amx_tiles_test {
namespace {

constexpr TileConfig kFull{.bytes = {64, 64, 64, 64, 64, 64, 64, 64}, .rows = {16, 16, 16, 16, 16, 16, 16, 16}};

std::uint32_t pair_of(float low, float high) {
  return static_cast<std::uint32_t>(halved(high)) << 16U | halved(low);
}

// One row, one column, one pair of products.
float product_of_pairs(float c, std::uint32_t a, std::uint32_t b) {
  const TileConfig config{.bytes = {4, 4, 4}, .rows = {1, 1, 1}};
  AmxTiles tiles;
  tiles.load_config(&config);
  tiles.load(0, &c, 0);
  tiles.load(1, &a, 0);
  tiles.load(2, &b, 0);
  tiles.multiply_bf16(0, 1, 2);
  tiles.store(0, &c, 0);
  return c;
}

TEST(AmxTiles, HandWorkedProducts) {
  EXPECT_EQ(product_of_pairs(1, pair_of(2, 3), pair_of(5, 7)), 1 + 10 + 21);
  EXPECT_EQ(product_of_pairs(-4, pair_of(0.5F, -1), pair_of(8, 0)), 0);
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(product_of_pairs(1, pair_of(infinity, 1), pair_of(2, 1)), infinity);
  EXPECT_TRUE(std::isnan(product_of_pairs(1, pair_of(infinity, 1), pair_of(0, 1))));
  EXPECT_EQ(product_of_pairs(0, pair_of(0x1p127F, 0), pair_of(2, 0)), infinity);
}

// 2^24 is the last float that has both neighbours 1 away or nearer: one by one, the ones would be lost.
TEST(AmxTiles, TheProductsOfAPairMeetBeforeTheyMeetTheSum) {
  EXPECT_EQ(product_of_pairs(0x1p24F, pair_of(1, 1), pair_of(1, 1)), 0x1p24F + 2);
  EXPECT_EQ(product_of_pairs(0x1p24F, pair_of(1, 0), pair_of(1, 1)), 0x1p24F);  // a tie, to the even side
  EXPECT_EQ(product_of_pairs(0x1p24F + 2, pair_of(1, 0), pair_of(1, 1)), 0x1p24F + 4);
}

TEST(AmxTiles, SubnormalNumbersCountAsZeroAndBecomeZero) {
  const float subnormal = 0x1p-127F;
  EXPECT_EQ(product_of_pairs(1, pair_of(subnormal, 0), pair_of(0x1p127F, 0)), 1);
  EXPECT_EQ(product_of_pairs(1, pair_of(0x1p127F, 0), pair_of(subnormal, 0)), 1);
  EXPECT_EQ(product_of_pairs(subnormal, 0, 0), 0);
  EXPECT_EQ(product_of_pairs(0, pair_of(0x1p-64F, 0), pair_of(0x1p-63F, 0)), 0);
  EXPECT_EQ(product_of_pairs(0, pair_of(0x1p-63F, 0), pair_of(0x1p-63F, 0)), 0x1p-126F);
  // Two halves of the smallest normal number: each is flushed before they could meet.
  EXPECT_EQ(product_of_pairs(0, pair_of(0x1p-64F, 0x1p-64F), pair_of(0x1p-63F, 0x1p-63F)), 0);
  // The caller's arithmetic keeps its subnormal numbers.
  volatile float half = 0x1p-126F;
  half = half / 2;
  EXPECT_NE(half, 0);
}

TEST(AmxTiles, ANewConfigurationAndAReleaseZeroEveryTile) {
  const std::array<std::uint32_t, 256> ones = [] {
    std::array<std::uint32_t, 256> values{};
    values.fill(1);
    return values;
  }();
  std::array<std::uint32_t, 256> stored{};
  AmxTiles tiles;
  tiles.load_config(&kFull);
  tiles.load(3, ones.data(), 64);
  tiles.store(3, stored.data(), 64);
  EXPECT_EQ(stored, ones);
  tiles.load_config(&kFull);
  tiles.store(3, stored.data(), 64);
  EXPECT_EQ(stored, (std::array<std::uint32_t, 256>{}));
  tiles.load(3, ones.data(), 64);
  tiles.release();
  tiles.load_config(&kFull);
  stored = ones;
  tiles.store(3, stored.data(), 64);
  EXPECT_EQ(stored, (std::array<std::uint32_t, 256>{}));
}

// What a processor does when it goes on after a page fault.
TEST(AmxTiles, TheFirstTransferBeginsAtTheStartRow) {
  std::array<std::uint32_t, 256> ones{};
  ones.fill(1);
  std::array<std::uint32_t, 256> stored{};
  TileConfig config = kFull;
  config.start_row = 3;
  AmxTiles tiles;
  tiles.load_config(&config);
  tiles.load(0, ones.data(), 64);
  tiles.store(0, stored.data(), 64);
  for (std::size_t i = 0; i < 256; ++i) EXPECT_EQ(stored[i], i < 3 * 16 ? 0U : 1U) << i;
  TileConfig in_force;
  tiles.store_config(&in_force);
  EXPECT_EQ(in_force.start_row, 0);
}

using AmxTilesDeathTest = ::testing::Test;

void load_changed(void (*change)(TileConfig&)) {
  TileConfig config = kFull;
  change(config);
  AmxTiles().load_config(&config);
}

TEST(AmxTilesDeathTest, ConfigurationsThatAProcessorRefusesAbort) {
  EXPECT_DEATH(load_changed([](TileConfig& config) { config.palette = 2; }), "ldtilecfg: #GP, palette 2");
  EXPECT_DEATH(load_changed([](TileConfig& config) { config.rows[7] = 17; }), "tile 7 has 17 rows of 64 bytes");
  EXPECT_DEATH(load_changed([](TileConfig& config) { config.bytes[0] = 68; }), "tile 0 has 16 rows of 68 bytes");
  EXPECT_DEATH(load_changed([](TileConfig& config) { config.bytes[4] = 0; }), "tile 4 .* both or neither");
  EXPECT_DEATH(load_changed([](TileConfig& config) { config.rows[4] = 0; }), "tile 4 .* both or neither");
  EXPECT_DEATH(load_changed([](TileConfig& config) { config.reserved[0] = 1; }), "#GP, a reserved byte");
  EXPECT_DEATH(load_changed([](TileConfig& config) { config.more_reserved[7] = 1; }), "#GP, a reserved byte");
  EXPECT_DEATH(load_changed([](TileConfig& config) { config.last_reserved[7] = 1; }), "#GP, a reserved byte");
}

TEST(AmxTilesDeathTest, TilesWithoutAConfigurationAbort) {
  std::array<std::uint32_t, 256> memory{};
  AmxTiles tiles;
  EXPECT_DEATH(tiles.load(0, memory.data(), 64), "tileloadd: #UD, tiles are not configured");
  EXPECT_DEATH(tiles.store(0, memory.data(), 64), "tilestored: #UD, tiles are not configured");
  EXPECT_DEATH(tiles.zero(0), "tilezero: #UD, tiles are not configured");
  EXPECT_DEATH(tiles.multiply_bf16(0, 1, 2), "tdpbf16ps: #UD, tiles are not configured");
  const TileConfig config{.bytes = {64, 64, 6}, .rows = {16, 4, 1}};
  tiles.load_config(&config);
  EXPECT_DEATH(tiles.load(5, memory.data(), 64), "tileloadd: #UD, tile 5 has no rows");
  EXPECT_DEATH(tiles.zero(5), "tilezero: #UD, tile 5 has no rows");
  EXPECT_DEATH(tiles.load(2, memory.data(), 64), "tile 2 has 6 bytes per row, no multiple of 4");
  TileConfig late = config;
  late.start_row = 4;
  tiles.load_config(&late);
  EXPECT_DEATH(tiles.load(1, memory.data(), 64), "start row 4, but tile 1 has 4 rows");
  tiles.release();
  EXPECT_DEATH(tiles.load(0, memory.data(), 64), "tiles are not configured");
}

TEST(AmxTilesDeathTest, ProductsOfShapesThatDoNotFitAbort) {
  const auto multiply = [](std::array<std::uint16_t, 8> bytes, std::array<std::uint8_t, 8> rows) {
    const TileConfig config{.bytes = bytes, .rows = rows};
    AmxTiles tiles;
    tiles.load_config(&config);
    tiles.multiply_bf16(0, 1, 2);
  };
  multiply({32, 20, 32}, {7, 7, 5});
  EXPECT_DEATH(multiply({32, 20, 32}, {6, 7, 5}), "6 x 8 words \\+= 7 x 5 words \\* 5 x 8 words");
  EXPECT_DEATH(multiply({32, 20, 32}, {7, 7, 6}), "7 x 8 words \\+= 7 x 5 words \\* 6 x 8 words");
  EXPECT_DEATH(multiply({32, 20, 36}, {7, 7, 5}), "7 x 8 words \\+= 7 x 5 words \\* 5 x 9 words");
  AmxTiles tiles;
  tiles.load_config(&kFull);
  EXPECT_DEATH(tiles.multiply_bf16(0, 0, 2), "tiles 0, 0 and 2 are not three tiles");
  EXPECT_DEATH(tiles.multiply_bf16(0, 1, 0), "tiles 0, 1 and 0 are not three tiles");
  EXPECT_DEATH(tiles.multiply_bf16(0, 1, 1), "tiles 0, 1 and 1 are not three tiles");
}

}  // namespace
}  // namespace routing::support::amx_tiles_test
