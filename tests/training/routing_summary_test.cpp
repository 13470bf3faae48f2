// Numbers of several layers and heads in one line.
#include "routing/training/log/routing_summary.h"

#include <gtest/gtest.h>

#include <map>

namespace routing::routing_summary_test {
namespace {

TEST(RoutingSummary, TakesExtremesSumsAndMeansByHand) {
  LayerStatistics first{.layer = 0};
  first.statistics.occupancy_min = {0.1, 0.2};
  first.statistics.occupancy_max = {0.5, 0.4};
  first.statistics.occupancy_entropy = {0.9, 0.8};
  first.statistics.choice_entropy = {0.7, 0.95};
  first.statistics.moving_entropy = {0.4, 0.6};
  first.statistics.fallback_fraction = {0.25, 0.5};
  first.statistics.dead_centroids = {1, 0};
  first.statistics.unrouted_fraction = 0.2;
  first.statistics.mean_memberships = 1.0;
  first.statistics.overlap_fraction = 0.1;
  first.statistics.tau_drift = 0.02;
  first.statistics.commitment_loss = 3.0;
  first.statistics.revived = 2;
  LayerStatistics second = first;
  second.layer = 1;
  second.statistics.occupancy_min = {0.05, 0.3};
  second.statistics.occupancy_entropy = {0.6, 0.5};
  second.statistics.moving_entropy = {0.3, 0.9};
  second.statistics.fallback_fraction = {0.0, 0.75};
  second.statistics.unrouted_fraction = 0.4;
  second.statistics.commitment_loss = 1.0;
  second.statistics.mean_memberships = 2.0;
  std::map<std::string, double> summary;
  for (const auto& [name, value] : routing_summary({first, second})) summary[name] = value;
  EXPECT_EQ(summary.size(), 16U);
  EXPECT_DOUBLE_EQ(summary.at("occupancy_min"), 0.05);
  EXPECT_DOUBLE_EQ(summary.at("occupancy_max"), 0.5);
  EXPECT_DOUBLE_EQ(summary.at("occupancy_entropy_min"), 0.5);
  EXPECT_DOUBLE_EQ(summary.at("occupancy_entropy_mean"), 0.7);
  EXPECT_DOUBLE_EQ(summary.at("choice_entropy_min"), 0.7);
  EXPECT_DOUBLE_EQ(summary.at("moving_entropy_min"), 0.3);
  EXPECT_DOUBLE_EQ(summary.at("moving_entropy_mean"), 0.55);
  EXPECT_DOUBLE_EQ(summary.at("fallback_fraction"), 0.375);
  EXPECT_DOUBLE_EQ(summary.at("fallback_fraction_max"), 0.75);
  EXPECT_DOUBLE_EQ(summary.at("dead_centroids"), 2.0);
  EXPECT_DOUBLE_EQ(summary.at("revived"), 4.0);
  EXPECT_DOUBLE_EQ(summary.at("unrouted_fraction"), 0.3);
  EXPECT_DOUBLE_EQ(summary.at("overlap_fraction"), 0.1);
  EXPECT_DOUBLE_EQ(summary.at("memberships"), 1.5);
  EXPECT_DOUBLE_EQ(summary.at("tau_drift"), 0.02);
  EXPECT_DOUBLE_EQ(summary.at("commitment_loss"), 2.0);
}

TEST(RoutingSummary, OfNothingIsEmpty) {
  EXPECT_TRUE(routing_summary({}).empty());
}

TEST(SpanSummary, HasTheMeanTheLargestAndTheKeysOfAllHeads) {
  const auto summary = span_summary(
      {{.layer = 0, .head = 1, .span = 2.5, .keys = 35}, {.layer = 1, .head = 0, .span = 7.5, .keys = 40}});
  const std::vector<std::pair<std::string, double>> expected{{"mean", 5.0}, {"largest", 7.5}, {"keys_mean", 37.5}};
  EXPECT_EQ(summary, expected);
  EXPECT_TRUE(span_summary({}).empty());
}

}  // namespace
}  // namespace routing::routing_summary_test
