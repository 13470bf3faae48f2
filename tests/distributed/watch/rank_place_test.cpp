// The contract of torchrun's environment: what is read, and what every mistake says.
#include "routing/distributed/watch/rank_place.h"

#include "routing/core/error.h"
#include "support/message_of.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

namespace routing::rank_place_test {
namespace {

using Environment = std::map<std::string, std::string>;

std::optional<RankPlace> place_in(const Environment& environment) {
  return rank_place([&](const std::string& name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::nullopt : std::optional<std::string>(found->second);
  });
}

// A complete environment of rank 1 of 3, with some variables changed; an empty value takes the variable away.
Environment changed(const Environment& changes) {
  Environment environment{
      {"RANK", "1"}, {"WORLD_SIZE", "3"}, {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "node7"}, {"MASTER_PORT", "29500"}};
  for (const auto& [name, value] : changes) {
    if (value.empty()) {
      environment.erase(name);
    } else {
      environment[name] = value;
    }
  }
  return environment;
}

std::string mistake(const Environment& changes) {
  return message_of<ConfigError>([&] { place_in(changed(changes)); });
}

TEST(RankPlace, IsNothingWithoutRankAndWorldSize) {
  EXPECT_FALSE(place_in({}).has_value());
  EXPECT_FALSE(place_in({{"MASTER_ADDR", "node7"}, {"MASTER_PORT", "29500"}, {"LOCAL_RANK", "0"}}).has_value());
}

TEST(RankPlace, ReadsEveryVariable) {
  const RankPlace place = place_in(changed({})).value();
  EXPECT_EQ(place.rank, 1);
  EXPECT_EQ(place.size, 3);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.master_address, "node7");
  EXPECT_EQ(place.master_port, 29500);
  EXPECT_FALSE(place.store_is_kept);
  EXPECT_EQ(place.attempt, 0);
  EXPECT_EQ(place_in(changed({{"LOCAL_RANK", ""}}))->local_rank, 0);
  EXPECT_EQ(place_in(changed({{"RANK", "2"}}))->rank, 2) << "the last rank";
  EXPECT_EQ(place_in(changed({{"MASTER_PORT", "65535"}}))->master_port, 65535);
}

TEST(RankPlace, OneOfRankAndWorldSizeAloneIsRefused) {
  EXPECT_NE(mistake({{"RANK", ""}}).find("WORLD_SIZE is 3, but RANK is not set"), std::string::npos);
  EXPECT_NE(mistake({{"WORLD_SIZE", ""}}).find("RANK is 1, but WORLD_SIZE is not set"), std::string::npos);
}

TEST(RankPlace, SeveralRanksNeedTheAddressAndThePortOfTheFirst) {
  EXPECT_NE(mistake({{"MASTER_ADDR", ""}}).find("WORLD_SIZE is 3, but MASTER_ADDR is not set"), std::string::npos);
  EXPECT_NE(mistake({{"MASTER_PORT", ""}}).find("WORLD_SIZE is 3, but MASTER_PORT is not set"), std::string::npos);
}

TEST(RankPlace, OneRankNeedsNoMaster) {
  const RankPlace place = place_in({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).value();
  EXPECT_EQ(place.rank, 0);
  EXPECT_EQ(place.size, 1);
  EXPECT_EQ(place.master_address, "");
}

TEST(RankPlace, WhatIsNoNumberOrOutOfRangeIsNamedWithItsValue) {
  for (const char* name :
       {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_PORT", "ROUTING_ATTEMPT", "TORCHELASTIC_RESTART_COUNT"}) {
    for (const char* value : {"two", "1x", " 1", "-1", "1.0", "70000", "99999999999999999999"}) {
      const std::string message = mistake({{name, value}});
      EXPECT_NE(message.find(std::string(name) + " is '" + value + "', but must be a whole number from "),
                std::string::npos)
          << message;
    }
  }
  EXPECT_NE(mistake({{"WORLD_SIZE", "0"}}).find("WORLD_SIZE is '0', but must be a whole number from 1 to 65536"),
            std::string::npos);
  EXPECT_NE(mistake({{"MASTER_PORT", "0"}}).find("MASTER_PORT is '0', but must be a whole number from 1 to 65535"),
            std::string::npos);
  // Set, but to nothing.
  Environment environment = changed({});
  environment["RANK"] = "";
  EXPECT_NE(message_of<ConfigError>([&] { place_in(environment); }).find("RANK is '', but must be"), std::string::npos);
}

TEST(RankPlace, RanksCountFromZeroToOneLessThanTheWorldSize) {
  for (const char* rank : {"3", "4"}) {
    EXPECT_NE(mistake({{"RANK", rank}}).find(std::string("RANK is ") + rank + ", but WORLD_SIZE is 3"),
              std::string::npos);
  }
}

TEST(RankPlace, TorchrunsStoreIsKeptByItsAgent) {
  EXPECT_TRUE(place_in(changed({{"TORCHELASTIC_USE_AGENT_STORE", "True"}}))->store_is_kept);
  EXPECT_FALSE(place_in(changed({{"TORCHELASTIC_USE_AGENT_STORE", "False"}}))->store_is_kept);
}

TEST(RankPlace, TheAttemptIsTorchrunsOrOurOwn) {
  EXPECT_EQ(place_in(changed({{"TORCHELASTIC_RESTART_COUNT", "2"}}))->attempt, 2);
  EXPECT_EQ(place_in(changed({{"ROUTING_ATTEMPT", "4"}}))->attempt, 4);
  EXPECT_EQ(place_in(changed({{"TORCHELASTIC_RESTART_COUNT", "2"}, {"ROUTING_ATTEMPT", "4"}}))->attempt, 4);
}

TEST(EnvironmentVariable, IsThatOfThisProcess) {
  ::setenv("ROUTING_TEST_OF_RANK_PLACE", "here", 1);
  EXPECT_EQ(environment_variable("ROUTING_TEST_OF_RANK_PLACE"), "here");
  ::unsetenv("ROUTING_TEST_OF_RANK_PLACE");
  EXPECT_EQ(environment_variable("ROUTING_TEST_OF_RANK_PLACE"), std::nullopt);
}

}  // namespace
}  // namespace routing::rank_place_test
