#include "routing/attention/cache/row_store.h"

#include <gtest/gtest.h>

#include <array>

namespace routing::row_store_test {
namespace {

// The first two lie halfway between numbers of bfloat16, which stand 2^-7 apart there, and go to the even ones.
constexpr std::array<float, 3> kKey{1.0F + 0x1p-8F, 1.0F + 0x1p-7F + 0x1p-8F, -3.0F};
constexpr std::array<float, 2> kValue{0.5F, 0x1p-40F};

TEST(RowStore, HoldsAValueBehindEachKey) {
  RowStore store(3, 2, /*halves=*/false);
  store.resize(4, 0);
  store.write(2, kKey.data(), kValue.data());
  EXPECT_EQ(store.key_dim(), 3);
  EXPECT_EQ(store.bytes(), 4 * 5 * 4);
  EXPECT_TRUE(at::equal(store.rows()[2], at::tensor({kKey[0], kKey[1], kKey[2], kValue[0], kValue[1]})));
}

TEST(RowStore, OfHalvesRoundsOnceAndTakesHalfTheMemory) {
  RowStore store(3, 2, /*halves=*/true);
  store.resize(4, 0);
  store.write(1, kKey.data(), kValue.data());
  EXPECT_TRUE(store.halves());
  EXPECT_EQ(store.bytes(), 4 * 5 * 2);
  EXPECT_TRUE(at::equal(store.rows()[1].to(at::kFloat), at::tensor({1.0F, 1.0F + 0x1p-6F, -3.0F, 0.5F, 0x1p-40F})));
}

TEST(RowStore, KeepsItsRowsWhenItGrowsAndCopiesThemAsTheyAre) {
  for (const bool halves : {false, true}) {
    RowStore store(3, 2, halves);
    store.resize(2, 0);
    store.write(0, kKey.data(), kValue.data());
    const std::array<float, 3> other_key{7.0F, 8.0F, 9.0F};
    store.write(1, other_key.data(), kValue.data());
    const at::Tensor before = store.rows().clone();
    store.resize(9, 2);
    EXPECT_EQ(store.capacity(), 9);
    EXPECT_TRUE(at::equal(store.rows().narrow(0, 0, 2), before));
    RowStore other(3, 2, halves);
    other.resize(1, 0);
    other.copy(0, store, 1);
    EXPECT_TRUE(at::equal(other.rows()[0], before[1]));
  }
}

}  // namespace
}  // namespace routing::row_store_test
