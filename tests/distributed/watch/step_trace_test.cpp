// The picture of a step, read back from its file.
#include "routing/distributed/watch/step_trace.h"

#include "support/temporary_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace routing::step_trace_test {
namespace {

nlohmann::json written(const StepTrace& trace) {
  const TemporaryFolder folder;
  trace.write(folder / "trace.json");
  std::ifstream file(folder / "trace.json");
  return nlohmann::json::parse(file);
}

TEST(StepTrace, AnEmptyOneNamesItsRows) {
  const nlohmann::json trace = written(StepTrace(3));
  ASSERT_EQ(trace.at("traceEvents").size(), 3U);
  std::vector<std::string> names;
  for (const auto& row : trace.at("traceEvents")) {
    EXPECT_EQ(row.at("ph"), "M");
    EXPECT_EQ(row.at("pid"), 3);
    names.push_back(row.at("args").at("name"));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"rank 3", "work", "network"}));
}

TEST(StepTrace, EventsComeBackWithTimesInMicrosecondsAndTheirLanes) {
  StepTrace trace(1);
  const StepTrace::Time begin = std::chrono::steady_clock::now();
  trace.add({.name = "forward", .begin = begin, .end = begin + std::chrono::microseconds(250), .step = 7});
  trace.add({.name = "sum of bucket 0",
             .lane = StepTrace::Lane::network,
             .begin = begin + std::chrono::microseconds(40),
             .end = begin + std::chrono::milliseconds(3),
             .step = 7,
             .bytes = 4096});
  const nlohmann::json list = written(trace).at("traceEvents");
  ASSERT_EQ(list.size(), 5U);
  const nlohmann::json& work = list[3];
  EXPECT_EQ(work.at("name"), "forward");
  EXPECT_EQ(work.at("cat"), "work");
  EXPECT_EQ(work.at("ph"), "X");
  EXPECT_EQ(work.at("pid"), 1);
  EXPECT_EQ(work.at("tid"), 0);
  EXPECT_NEAR(work.at("dur").get<double>(), 250.0, 1e-3);
  EXPECT_GE(work.at("ts").get<double>(), 0.0);
  EXPECT_EQ(work.at("args").at("step"), 7);
  EXPECT_FALSE(work.at("args").contains("bytes"));
  const nlohmann::json& network = list[4];
  EXPECT_EQ(network.at("name"), "sum of bucket 0");
  EXPECT_EQ(network.at("cat"), "network");
  EXPECT_EQ(network.at("tid"), 1);
  EXPECT_NEAR(network.at("ts").get<double>() - work.at("ts").get<double>(), 40.0, 1e-3);
  EXPECT_NEAR(network.at("dur").get<double>(), 2960.0, 1e-3);
  EXPECT_EQ(network.at("args").at("bytes"), 4096);
}

TEST(StepTrace, WorkLastsToTheEndOfItsScopeAndIsOfTheCurrentStep) {
  StepTrace trace(0);
  trace.begin_step(5);
  {
    const TracedWork work(&trace, "forward");
    const TracedWork nobody_asked(nullptr, "backward");
    EXPECT_TRUE(trace.events().empty());
  }
  ASSERT_EQ(trace.events().size(), 1U);
  EXPECT_EQ(trace.events()[0].name, "forward");
  EXPECT_EQ(trace.events()[0].step, 5);
  EXPECT_EQ(trace.step(), 5);
  EXPECT_LE(trace.events()[0].begin, trace.events()[0].end);
}

TEST(StepTrace, NoEventIsLostWhenThreadsAddTogether) {
  StepTrace trace(0);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&trace, thread] {
      for (int i = 0; i < 500; ++i) trace.add({.name = std::to_string(thread), .begin = {}, .end = {}, .step = i});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(trace.events().size(), 2000U);
  std::vector<std::int64_t> next(4, 0);
  for (const StepTrace::Event& event : trace.events()) EXPECT_EQ(event.step, next[std::stoul(event.name)]++);
}

}  // namespace
}  // namespace routing::step_trace_test
