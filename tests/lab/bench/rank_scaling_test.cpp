// What bench distributed reads off a run, and the model on paper, worked by hand.
#include "lab/bench/rank_scaling.h"

#include "routing/core/error.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>

namespace routing::bench::rank_scaling_test {
namespace {

namespace fs = std::filesystem;

class RankScaling : public testing::Test {
 protected:
  RankScaling() : run_(fs::temp_directory_path() / ("rank_scaling_" + std::to_string(::getpid()))) {
    fs::create_directories(run_ / "ranks");
  }
  ~RankScaling() override { fs::remove_all(run_); }

  // Steps of 1, 2, 4, 3 and 5 seconds with 100 tokens each.
  void write_metrics(int ranks) const {
    std::ofstream file(run_ / "metrics.jsonl");
    double now = 0.0;
    int step = 0;
    for (const double seconds : {1.0, 2.0, 4.0, 3.0, 5.0}) {
      now += seconds;
      ++step;
      nlohmann::json line{{"step", step}, {"train_loss_nats", 1.0}, {"seconds", now}, {"tokens", 100 * step}};
      if (ranks > 1) {
        line["ranks"] = ranks;
        line["waiting_share"] = 0.1 * step;
        line["bytes_sent_per_step"] = 1000.0 * step;
      }
      file << line << "\n" << nlohmann::json{{"step", step}, {"eval_loss_nats", 2.0}, {"seconds", now}} << "\n";
    }
  }

  // In step s: backward from 10 to 20, buckets from 12 to 14, from 13 to 16 and from 20 to 20 + s milliseconds.
  void write_trace() const {
    nlohmann::json events = nlohmann::json::array();
    const auto add = [&](const char* name, const char* kind, double begin, double end, int step) {
      nlohmann::json arguments{{"step", step}};
      if (std::string(kind) == "network") arguments["bytes"] = 7;
      events.push_back({{"name", name},
                        {"cat", kind},
                        {"ph", "X"},
                        {"pid", 0},
                        {"tid", 0},
                        {"ts", 1000.0 * begin},
                        {"dur", 1000.0 * (end - begin)},
                        {"args", arguments}});
    };
    events.push_back({{"name", "process_name"}, {"ph", "M"}, {"pid", 0}, {"tid", 0}, {"args", {{"name", "rank 0"}}}});
    for (int step = 1; step <= 5; ++step) {
      add("sum of bucket 0", "network", 12, 14, step);
      add("sum of bucket 1", "network", 13, 16, step);
      add("sum of bucket 2", "network", 20, 20 + step, step);
      add("backward", "work", 10, 20, step);
    }
    std::ofstream(run_ / "ranks/trace-rank-0000.json") << nlohmann::json{{"traceEvents", events}};
  }

  fs::path run_;
};

TEST_F(RankScaling, OneRankGivesMediansOfItsSteps) {
  write_metrics(1);
  const RankRun run = read_rank_run(run_, 2);
  EXPECT_EQ(run.ranks, 1);
  EXPECT_EQ(run.step_seconds, 4.0);  // of 4, 3 and 5
  EXPECT_EQ(run.tokens_per_step, 100.0);
  EXPECT_EQ(run.tokens_per_second(), 25.0);
  EXPECT_EQ(run.bytes_sent, 0.0);
  EXPECT_THROW(read_rank_run(run_, 5), FileError);
}

TEST_F(RankScaling, SeveralRanksAlsoGiveWhatTravelsWhen) {
  write_metrics(2);
  EXPECT_THROW(read_rank_run(run_, 2), FileError);  // without a trace
  write_trace();
  const RankRun run = read_rank_run(run_, 2);
  EXPECT_EQ(run.ranks, 2);
  EXPECT_DOUBLE_EQ(run.waiting_share, 0.4);
  EXPECT_DOUBLE_EQ(run.bytes_sent, 4000.0);
  EXPECT_EQ(run.buckets, 3);
  EXPECT_EQ(run.gradient_bytes, 21);
  EXPECT_NEAR(run.network_seconds, 8e-3, 1e-9);  // 12 to 16, and 4 of the median step
  EXPECT_NEAR(run.overlap_seconds, 4e-3, 1e-9);
  EXPECT_NEAR(run.window_seconds, 8e-3, 1e-9);  // 12 to 20
}

TEST(PaperModelOfRanks, HandWorked) {
  // 1e9 bytes round a ring of 4 at 8 Gbit/s: 1.5 s. Two buckets, 6 messages of 1 ms each: 12 ms.
  PaperModel model{.compute_seconds = 2.0,
                   .window_seconds = 0.5,
                   .gradient_bytes = 1e9,
                   .buckets = 2,
                   .bits_per_second = 8e9,
                   .latency_seconds = 1e-3};
  EXPECT_DOUBLE_EQ(network_seconds(model, 4), 1.512);
  // The first half needs 0.756 s and 0.5 are hidden; the second 0.756 are not.
  EXPECT_DOUBLE_EQ(step_seconds(model, 4), 2.0 + 0.256 + 0.756);
  EXPECT_DOUBLE_EQ(speedup(model, 4), 8.0 / 3.012);
  EXPECT_EQ(step_seconds(model, 1), 2.0);
  EXPECT_EQ(speedup(model, 1), 1.0);
  // What the window hides costs nothing but the last bucket.
  model.window_seconds = 1.0;
  EXPECT_DOUBLE_EQ(step_seconds(model, 4), 2.756);
}

}  // namespace
}  // namespace routing::bench::rank_scaling_test
