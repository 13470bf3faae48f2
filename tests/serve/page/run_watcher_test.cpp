// What clients hear of while runs go on.
#include "routing/core/files.h"
#include "serve/page/page_runs.h"
#include "serve/page/written_runs.h"
#include "support/message_of.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace routing::run_watcher_test {
namespace {

namespace fs = std::filesystem;

class RunWatcherTest : public WrittenRuns {
 protected:
  RunWatcherTest() { fs::create_directories(folder_ / "runs"); }

  // Of one watcher: each event by name, the last of a name.
  std::map<std::string, Json> heard(std::uint64_t watcher) {
    std::map<std::string, Json> events;
    for (const RunWatcher::Event& event : watcher_->poll()) {
      if (event.watcher == watcher) events[event.name] = Json::parse(*event.data);
    }
    return events;
  }
  void serve() {
    catalog_.emplace(std::vector<fs::path>{folder_ / "runs"});
    pages_.emplace(*catalog_);
    watcher_.emplace(*pages_);
  }

  std::optional<RunCatalog> catalog_;
  std::optional<RunPages> pages_;
  std::optional<RunWatcher> watcher_;
};

TEST_F(RunWatcherTest, TheListIsToldAtOnceAndWhenItChanges) {
  make_run("runs/a", training_line(10, 4.0));
  serve();
  EXPECT_TRUE(watcher_->poll().empty()) << "nobody listens";
  const std::uint64_t one = watcher_->add({});
  auto events = heard(one);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events.at("runs"), pages_->runs());
  EXPECT_TRUE(heard(one).empty());
  append("runs/a/metrics.jsonl", training_line(20, 3.0));
  EXPECT_EQ(heard(one).at("runs")["runs"][0].at("step"), 20);
  make_run("runs/b");
  EXPECT_EQ(heard(one).at("runs").at("runs").size(), 2U);
  fs::rename(folder_ / "runs/b", folder_ / "runs/c");
  EXPECT_EQ(heard(one).at("runs")["runs"][1].at("id"), "c");
  fs::remove_all(folder_ / "runs/c");
  EXPECT_EQ(heard(one).at("runs").at("runs").size(), 1U);
  watcher_->remove(one);
  EXPECT_EQ(watcher_->size(), 0U);
  EXPECT_TRUE(watcher_->poll().empty());
}

TEST_F(RunWatcherTest, NewLinesAndSamplesAreToldOnce) {
  make_run("runs/a", training_line(10, 4.0) + training_line(20, 3.0));
  append("runs/a/clusters.jsonl", clusters_line(10, {0.5, 0.5}));
  write("runs/a/samples/step-00000010.txt", "before");
  serve();
  const std::uint64_t one = watcher_->add({.run = "a", .metrics = 1});
  auto events = heard(one);
  EXPECT_EQ(events.at("metrics"),
            Json::parse(R"({"id":"a","from":1,"next":2,"lines":[)" + training_line(20, 3.0) + "]}"));
  EXPECT_FALSE(events.contains("clusters"));
  EXPECT_FALSE(events.contains("samples"));
  EXPECT_TRUE(heard(one).empty());
  append("runs/a/metrics.jsonl", training_line(30, 2.0));
  append("runs/a/clusters.jsonl", clusters_line(20, {0.25, 0.75}));
  write("runs/a/samples/step-00000020.txt", "now");
  events = heard(one);
  EXPECT_EQ(events.at("metrics").at("from"), 2);
  EXPECT_EQ(events.at("metrics").at("lines").size(), 1U);
  EXPECT_EQ(events.at("clusters").at("id"), "a");
  EXPECT_EQ(events.at("clusters").at("after"), 10);
  EXPECT_EQ(events.at("clusters").at("steps"), Json::parse("[20]"));
  EXPECT_EQ(events.at("samples").at("samples").size(), 2U);
  EXPECT_TRUE(heard(one).empty());
}

TEST_F(RunWatcherTest, AClientMaySayWhatItHas) {
  make_run("runs/a", training_line(10, 4.0));
  append("runs/a/clusters.jsonl", clusters_line(10, {0.5, 0.5}) + clusters_line(20, {0.5, 0.5}));
  write("runs/a/samples/step-00000010.txt", "ten");
  serve();
  const std::uint64_t all = watcher_->add({.run = "a", .clusters = -1, .samples = -1});
  auto events = heard(all);
  EXPECT_EQ(events.at("metrics").at("from"), 0);
  EXPECT_EQ(events.at("clusters").at("steps"), Json::parse("[10,20]"));
  EXPECT_EQ(events.at("samples").at("samples").size(), 1U);
  const std::uint64_t some = watcher_->add({.run = "a", .metrics = 1, .clusters = 10, .samples = 10});
  events = heard(some);
  EXPECT_FALSE(events.contains("metrics"));
  EXPECT_EQ(events.at("clusters").at("steps"), Json::parse("[20]"));
  EXPECT_FALSE(events.contains("samples"));
  // Lines of a run that was there before: it is to begin anew.
  const std::uint64_t stale = watcher_->add({.run = "a", .metrics = 77});
  EXPECT_EQ(heard(stale).at("metrics").at("from"), 0);
  EXPECT_THROW(watcher_->add({.run = "none"}), NotFoundError);
  EXPECT_THROW(watcher_->add({.run = "../a"}), NotFoundError);
  EXPECT_EQ(message_of<InputError>([&] { watcher_->add({.run = "a", .metrics = -3}); }),
            "after is -3, but counts lines from 0 on");
}

TEST_F(RunWatcherTest, WhatAResumeTakesBackIsTakenBack) {
  const std::string first = training_line(10, 4.0);
  const std::string other = training_line(20, 3.0);
  make_run("runs/a", first + other + training_line(30, 2.0));
  append("runs/a/clusters.jsonl", clusters_line(10, {0.5, 0.5}) + clusters_line(20, {0.5, 0.5}));
  serve();
  const std::uint64_t one = watcher_->add({.run = "a"});
  heard(one);
  write_file_at_once(folder_ / "runs/a/metrics.jsonl", first);
  write_file_at_once(folder_ / "runs/a/clusters.jsonl", clusters_line(10, {0.5, 0.5}));
  auto events = heard(one);
  EXPECT_EQ(events.at("metrics"), Json::parse(R"({"id":"a","from":1,"next":1,"lines":[]})"));
  EXPECT_EQ(events.at("clusters").at("after"), 10);
  EXPECT_TRUE(events.at("clusters").at("steps").empty());
  append("runs/a/metrics.jsonl", other);
  EXPECT_EQ(heard(one).at("metrics").at("from"), 1);
  fs::remove(folder_ / "runs/a/metrics.jsonl");
  EXPECT_EQ(heard(one).at("metrics"), Json::parse(R"({"id":"a","from":0,"next":0,"lines":[]})"));
}

TEST_F(RunWatcherTest, ARunThatGoesAndComesBackIsToldFromItsBeginning) {
  make_run("runs/a", training_line(10, 4.0));
  serve();
  const std::uint64_t one = watcher_->add({.run = "a"});
  heard(one);
  fs::remove_all(folder_ / "runs/a");
  auto events = heard(one);
  EXPECT_TRUE(events.at("runs").at("runs").empty());
  EXPECT_FALSE(events.contains("metrics"));
  make_run("runs/a", training_line(5, 4.0));
  events = heard(one);
  EXPECT_EQ(events.at("metrics").at("from"), 0);
  EXPECT_EQ(events.at("metrics")["lines"][0].at("step"), 5);
  EXPECT_EQ(events.at("clusters").at("after"), -1);
}

TEST_F(RunWatcherTest, HalfALineIsToldWhenItIsWhole) {
  make_run("runs/a", training_line(10, 4.0));
  serve();
  const std::uint64_t one = watcher_->add({.run = "a"});
  heard(one);
  const std::string line = training_line(20, 3.0);
  append("runs/a/metrics.jsonl", line.substr(0, 20));
  EXPECT_FALSE(heard(one).contains("metrics"));
  append("runs/a/metrics.jsonl", line.substr(20));
  EXPECT_EQ(heard(one).at("metrics").at("lines").size(), 1U);
}

TEST_F(RunWatcherTest, WatchersOfOneRunShareWhatTheyHear) {
  make_run("runs/a", training_line(10, 4.0));
  serve();
  const std::uint64_t one = watcher_->add({.run = "a"});
  const std::uint64_t two = watcher_->add({.run = "a"});
  std::map<std::string, std::map<std::uint64_t, std::shared_ptr<const std::string>>> texts;
  for (const RunWatcher::Event& event : watcher_->poll()) texts[event.name][event.watcher] = event.data;
  for (const char* name : {"runs", "metrics"}) {
    ASSERT_EQ(texts[name].size(), 2U) << name;
    EXPECT_EQ(texts[name][one], texts[name][two]) << name;
  }
}

}  // namespace
}  // namespace routing::run_watcher_test
