// The model on paper of `bench long`, worked by hand.
#include "lab/bench/long_scaling.h"

#include <gtest/gtest.h>

namespace routing::bench::long_scaling_test {
namespace {

// 4 s to compute; rows of 1 GB, gradients of 0.5 GB, over 10 GB/s; 3 layers.
constexpr LongModel kModel{.compute_seconds = 4.0,
                           .row_bytes = 1e9,
                           .reads_all = true,
                           .gradient_bytes = 0.5e9,
                           .layers = 3,
                           .bits_per_second = 80e9,
                           .latency_seconds = 0.01};

TEST(LongModel, RowsOfAllOtherPiecesAndGradientsTakeTheirTime) {
  EXPECT_DOUBLE_EQ(step_seconds(kModel, 1), 4.0);
  // There and back 0.2 s, half of twice the gradients 0.05 s, and five messages.
  EXPECT_DOUBLE_EQ(network_seconds(kModel, 2), 0.2 + 0.05 + 0.05);
  EXPECT_DOUBLE_EQ(network_seconds(kModel, 4), 0.6 + 0.075 + 0.15);
  EXPECT_DOUBLE_EQ(step_seconds(kModel, 4), 4.825);
  EXPECT_DOUBLE_EQ(speedup(kModel, 4), 16.0 / 4.825);
}

TEST(LongModel, OfListsThatAPieceFillsRowsComeOnceHoweverManyMachines) {
  LongModel lists = kModel;
  lists.reads_all = false;
  EXPECT_DOUBLE_EQ(network_seconds(lists, 2), network_seconds(kModel, 2));
  EXPECT_DOUBLE_EQ(network_seconds(lists, 4), 0.2 + 0.075 + 0.15);
  EXPECT_DOUBLE_EQ(step_seconds(lists, 1), 4.0);
}

TEST(LongModel, RowsAreWhatWasSentBesideGradients) {
  EXPECT_DOUBLE_EQ(row_bytes_for_one(700.0, 500.0, 2), 200.0);
  EXPECT_DOUBLE_EQ(row_bytes_for_one(1500.0, 400.0, 4), 300.0);
  EXPECT_DOUBLE_EQ(row_bytes_for_one(0.0, 0.0, 1), 0.0);
  EXPECT_DOUBLE_EQ(row_bytes_for_one(10.0, 400.0, 2), 0.0) << "less than the gradients alone";
}

}  // namespace
}  // namespace routing::bench::long_scaling_test
