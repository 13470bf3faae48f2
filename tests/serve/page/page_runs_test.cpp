// What the page is told of runs' files.
#include "serve/page/page_runs.h"

#include "routing/config/toml.h"
#include "routing/core/files.h"
#include "routing/training/run_directory.h"
#include "routing/training/run_lock.h"
#include "serve/page/page_lines.h"
#include "serve/page/run_files.h"
#include "serve/page/written_runs.h"
#include "support/message_of.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

namespace routing::page_runs_test {
namespace {

namespace fs = std::filesystem;

class PageRuns : public WrittenRuns {};

TEST_F(PageRuns, TheListSaysWhatRoutingRunsSays) {
  make_run("runs/exp/a", training_line(10, 4.0) + evaluation_line(10, 3.5) + training_line(20, 3.0));
  make_run("runs/b");
  RunCatalog catalog({folder_ / "runs"});
  RunPages pages(catalog);
  Json answer = pages.runs();
  ASSERT_EQ(answer.at("runs").size(), 2U);
  Json& a = answer["runs"][1];
  EXPECT_TRUE(a.at("changed").get<std::string>().ends_with("Z"));
  a.erase("changed");
  EXPECT_EQ(a, Json::parse(R"({"id":"exp/a","state":"stopped","name":"written","data":"text","parameters":null,
    "step":20,"steps":40,"tokens":2000,"seconds":20.0,"unit":"bits_per_byte","unit_name":"bits/byte","best":3.5,
    "best_step":10,"best_split":"valid","validity":"causal","audit":"not audited"})"));
  EXPECT_EQ(answer["runs"][0].at("id"), "b");
  EXPECT_EQ(answer["runs"][0].at("unit"), nullptr);
  const RunLock training(folder_ / "runs/b");
  EXPECT_EQ(pages.runs()["runs"][0].at("state"), "running");
}

TEST_F(PageRuns, TheListChangesWithTheFiles) {
  make_run("runs/a", training_line(10, 4.0));
  RunCatalog catalog({folder_ / "runs"});
  RunPages pages(catalog);
  EXPECT_EQ(pages.runs()["runs"][0].at("step"), 10);
  append("runs/a/metrics.jsonl", training_line(40, 2.0));
  EXPECT_EQ(pages.runs()["runs"][0].at("step"), 40);
  EXPECT_EQ(pages.runs()["runs"][0].at("state"), "finished");
  ExperimentConfig longer = config();
  longer.train.steps = 80;
  RunDirectory(folder_ / "runs/a").replace_config(longer);
  EXPECT_EQ(pages.runs()["runs"][0].at("state"), "stopped");
  append("runs/a/metrics.jsonl", training_line(80, 9.0));
  EXPECT_EQ(pages.runs()["runs"][0].at("state"), "diverged");
  append("runs/a/metrics.jsonl", "rubbish\n");
  EXPECT_EQ(pages.runs()["runs"][0].at("problem"), "a/metrics.jsonl: line 4 is not a JSON object; remove the line");
  EXPECT_FALSE(pages.runs()["runs"][0].contains("step"));
  fs::remove_all(folder_ / "runs/a");
  EXPECT_TRUE(pages.runs().at("runs").empty());
}

TEST_F(PageRuns, KeysOfTheConfigurationShowNoPath) {
  ExperimentConfig with_paths = config();
  with_paths.data.path = "/home/me/books/text\n/home/me/more/";
  with_paths.data.vocabulary = "/home/me/words.txt";
  with_paths.data.cache = "/var/cache/routing";
  with_paths.source = "as in /home/me/notes";
  make_run("runs/a");
  RunDirectory(folder_ / "runs/a").replace_config(with_paths);
  RunCatalog catalog({folder_ / "runs"});
  RunPages pages(catalog);
  const Json keys = pages.config("a").at("keys");
  EXPECT_EQ(keys.at("train.steps"), "40");
  EXPECT_EQ(keys.at("data.path"), "text, more");
  EXPECT_EQ(keys.at("data.vocabulary"), "words.txt");
  EXPECT_EQ(keys.at("data.cache"), "routing");
  EXPECT_EQ(keys.at("source"), "as in notes");
  EXPECT_EQ(pages.config("a").dump().find("/home"), std::string::npos);
  write_file_at_once(folder_ / "runs/a/config.toml", std::string("no toml"));
  const std::string problem = message_of<FileError>([&] { pages.config("a"); });
  EXPECT_EQ(problem.find("a/config.toml:1: "), 0U) << problem;
}

TEST_F(PageRuns, MetricsGoOnFromALine) {
  const std::string lines = training_line(10, 4.0) + evaluation_line(10, 3.5) + training_line(20, 3.0);
  make_run("runs/a", lines + "{\"step\":");
  RunCatalog catalog({folder_ / "runs"});
  RunPages pages(catalog);
  const Json all = pages.metrics("a", 0);
  EXPECT_EQ(all.at("from"), 0);
  EXPECT_EQ(all.at("next"), 3);
  ASSERT_EQ(all.at("lines").size(), 3U);
  EXPECT_EQ(all["lines"][1], Json::parse(evaluation_line(10, 3.5)));
  EXPECT_FALSE(all.contains("problem"));
  const Json last = pages.metrics("a", 2);
  EXPECT_EQ(last.at("from"), 2);
  ASSERT_EQ(last.at("lines").size(), 1U);
  EXPECT_EQ(last["lines"][0].at("step"), 20);
  EXPECT_EQ(pages.metrics("a", 3), Json::parse(R"({"from":3,"next":3,"lines":[]})"));
  EXPECT_EQ(pages.metrics("a", 4).at("from"), 0) << "the client has lines that are no more";
  EXPECT_EQ(message_of<InputError>([&] { pages.metrics("a", -1); }), "after is -1, but counts lines from 0 on");
  EXPECT_THROW(pages.metrics("b", 0), NotFoundError);
  make_run("runs/new");
  pages.runs();
  EXPECT_EQ(pages.metrics("new", 0), Json::parse(R"({"from":0,"next":0,"lines":[]})"));
}

TEST_F(PageRuns, LinesOfTrainingAreThinnedAndOthersAreNot) {
  std::string lines;
  for (int step = 1; step <= 5000; ++step) {
    lines += training_line(step, 1.0);
    if (step % 10 == 0) lines += evaluation_line(step, 1.0);
  }
  make_run("runs/a", lines);
  RunCatalog catalog({folder_ / "runs"});
  RunPages pages(catalog);
  const Json answer = pages.metrics("a", 0);
  EXPECT_EQ(answer.at("next"), 5500);
  std::vector<std::int64_t> training;
  std::int64_t evaluations = 0;
  std::int64_t before = 0;
  for (const Json& line : answer.at("lines")) {
    EXPECT_LE(before, line.at("step").get<std::int64_t>()) << "in the order of the file";
    before = line.at("step");
    if (line.contains("train_loss_nats")) {
      training.push_back(before);
    } else {
      ++evaluations;
    }
  }
  EXPECT_EQ(evaluations, 500);
  ASSERT_EQ(training.size(), 2000U);
  EXPECT_EQ(training.front(), 1);
  EXPECT_EQ(training.back(), 5000);
  for (std::size_t i = 1; i < training.size(); ++i) {
    EXPECT_GE(training[i] - training[i - 1], 2);
    EXPECT_LE(training[i] - training[i - 1], 3);
  }
}

TEST(EvenlyThinned, KeepsTheEnds) {
  using Numbers = std::vector<std::size_t>;
  EXPECT_EQ(evenly_thinned({1, 2, 3}, 3), (Numbers{1, 2, 3}));
  EXPECT_EQ(evenly_thinned({1, 2, 3, 4, 5}, 3), (Numbers{1, 3, 5}));
  EXPECT_EQ(evenly_thinned({1, 2, 3}, 2), (Numbers{1, 3}));
  EXPECT_EQ(evenly_thinned({1, 2, 3}, 1), Numbers{3});
  EXPECT_EQ(evenly_thinned({1, 2, 3}, 0), Numbers{});
  EXPECT_EQ(evenly_thinned({}, 2), Numbers{});
}

TEST_F(PageRuns, ClustersAreSharesByStepHeadAndCluster) {
  make_run("runs/a");
  append("runs/a/clusters.jsonl", clusters_line(100, {0.25, 0.75}) + clusters_line(200, {0.5, 0.5}));
  RunCatalog catalog({folder_ / "runs"});
  RunPages pages(catalog);
  EXPECT_EQ(pages.clusters("a", -1), Json::parse(R"({"after":-1,
    "heads":[{"attention":"layer 1","head":2,"clusters":2},{"attention":"layer 1","head":3,"clusters":1}],
    "steps":[100,200],"shares":[[[0.25,0.75],[1.0]],[[0.5,0.5],[1.0]]],"dead":[3,3]})"));
  const Json later = pages.clusters("a", 100);
  EXPECT_EQ(later.at("after"), 100);
  EXPECT_EQ(later.at("steps"), Json::parse("[200]"));
  const Json none = pages.clusters("a", 200);
  EXPECT_TRUE(none.at("steps").empty() && none.at("heads").empty());
  EXPECT_EQ(none.at("after"), 200);
  // Another run in the same file: only what has the heads of the last line can stand in one picture.
  append("runs/a/clusters.jsonl", clusters_line(300, {0.5, 0.25, 0.25}));
  EXPECT_EQ(pages.clusters("a", -1).at("steps"), Json::parse("[300]"));
  append("runs/a/clusters.jsonl", "{\"step\":400,\"heads\":[{}]}\n");
  EXPECT_EQ(pages.clusters("a", -1).at("steps"), Json::parse("[300]"));
  EXPECT_EQ(pages.clusters("a", -1).at("problem").get<std::string>().find("a/clusters.jsonl: line 4 is not of a run"),
            0U);
}

TEST_F(PageRuns, OfManyStepsOrManyClustersSomeAreTold) {
  std::string few;
  std::string many;
  for (int step = 1; step <= 1000; ++step) few += clusters_line(step, {0.25, 0.75});
  for (int step = 1; step <= 30; ++step) many += clusters_line(step, std::vector<double>(39'999, 0.0));
  make_run("runs/few");
  make_run("runs/many");
  append("runs/few/clusters.jsonl", few);
  append("runs/many/clusters.jsonl", many);
  RunCatalog catalog({folder_ / "runs"});
  RunPages pages(catalog);
  const Json thinned = pages.clusters("few", -1);
  EXPECT_EQ(thinned.at("steps").size(), RunPages::kMostSteps);
  EXPECT_EQ(thinned.at("steps").front(), 1);
  EXPECT_EQ(thinned.at("steps").back(), 1000);
  EXPECT_EQ(pages.clusters("many", -1).at("steps").size(), 10U);
}

TEST_F(PageRuns, SamplesAreTextsAndImages) {
  make_run("runs/a");
  RunCatalog catalog({folder_ / "runs"});
  RunPages pages(catalog);
  EXPECT_EQ(pages.samples("a"), Json::parse(R"({"samples":[]})"));
  write("runs/a/samples/step-00000200.txt", "two");
  write("runs/a/samples/step-00000100.txt", "one");
  write("runs/a/samples/step-00000300.png", "PNG");
  write("runs/a/samples/step-00000100.txt.part-1-1", "half");
  write("runs/a/samples/mine.txt", "mine");
  EXPECT_EQ(pages.samples("a").at("samples"), Json::parse(R"([{"step":100,"kind":"text","text":"one"},
    {"step":200,"kind":"text","text":"two"},{"step":300,"kind":"image","file":"step-00000300.png"}])"));
  fs::remove(folder_ / "runs/a/samples/step-00000200.txt");
  EXPECT_EQ(pages.samples("a").at("samples").size(), 2U);
  EXPECT_EQ(pages.sample_image("a", "step-00000300.png"), "PNG");
}

TEST_F(PageRuns, LongTextsAndManySamplesAreCut) {
  make_run("runs/a");
  write("runs/a/samples/step-00000001.txt", std::string(70'000, 'a'));
  RunCatalog catalog({folder_ / "runs"});
  RunPages pages(catalog);
  EXPECT_EQ(pages.samples("a").at("samples")[0].at("text").get<std::string>().size(), 65'536U);
  for (int step = 2; step <= 250; ++step) {
    write(RunDirectory("runs/a").sample_file(step, ".txt").string(), std::to_string(step));
  }
  const Json samples = pages.samples("a").at("samples");
  ASSERT_EQ(samples.size(), RunPages::kMostSamples);
  EXPECT_EQ(samples.front().at("step"), 1);
  EXPECT_EQ(samples.back().at("step"), 250);
}

// Names are compared with what training writes; nothing else is read, whatever it is called.
TEST_F(PageRuns, OnlyImagesOfSamplesAreHandedOut) {
  make_run("runs/a");
  write("runs/a/samples/step-00000300.png", "PNG");
  write("runs/a/samples/step-00000300.txt", "text");
  write("runs/a/step-00000300.png", "outside");
  write("runs/a/samples/sub/step-00000300.png", "below");
  RunCatalog catalog({folder_ / "runs"});
  RunPages pages(catalog);
  for (const std::string name :
       {"step-00000300.txt", "step-00000301.png", "../step-00000300.png", "sub/step-00000300.png", "/etc/passwd", "..",
        "", ".png", "step-300.png", "step-00000300.PNG", "./step-00000300.png", "step-00000300.png/",
        "step-00000300.png\n", "step-0000000000000000300.png"}) {
    EXPECT_THROW(pages.sample_image("a", name), NotFoundError) << name;
  }
  EXPECT_THROW(pages.sample_image("a", std::string("step-00000300.png\0", 18)), NotFoundError);
  EXPECT_THROW(pages.sample_image("b", "step-00000300.png"), NotFoundError);
  write("secret", "of somebody else");
  fs::create_symlink(folder_ / "secret", folder_ / "runs/a/samples/step-00000400.png");
  const std::string problem = message_of<FileError>([&] { pages.sample_image("a", "step-00000400.png"); });
  EXPECT_EQ(problem.find("a/samples/step-00000400.png: cannot be read: "), 0U) << problem;
  fs::create_symlink(folder_ / "secret", folder_ / "runs/a/samples/step-00000400.txt");
  EXPECT_EQ(pages.samples("a").dump().find("somebody"), std::string::npos);
}

TEST_F(PageRuns, ARunThatIsReplacedIsReadAnew) {
  make_run("runs/a", training_line(10, 4.0));
  make_run("other/a", training_line(7, 4.0));
  RunCatalog catalog({folder_ / "runs"});
  RunPages pages(catalog);
  EXPECT_EQ(pages.metrics("a", 0)["lines"][0].at("step"), 10);
  fs::rename(folder_ / "runs/a", folder_ / "runs/b");
  fs::rename(folder_ / "other/a", folder_ / "runs/a");
  pages.runs();
  EXPECT_EQ(pages.metrics("a", 0)["lines"][0].at("step"), 7);
  EXPECT_EQ(pages.metrics("b", 0)["lines"][0].at("step"), 10);
}

TEST(FirstLineBehind, IsThatOfALaterStep) {
  const TemporaryFolder folder;
  class Steps : public LineListener {
   public:
    void restart() override {}
    LineMark take(const nlohmann::ordered_json& line) override { return {.step = line.at("step")}; }
  } steps;
  write_file_at_once(folder / "lines", std::string("{\"step\":10}\n{\"step\":20}\nx\n{\"step\":30}\n"));
  GrowingLines lines(folder / "lines", steps);
  lines.refresh();
  EXPECT_EQ(first_line_behind(lines, -1), 0U);
  EXPECT_EQ(first_line_behind(lines, 10), 1U);
  EXPECT_EQ(first_line_behind(lines, 20), 3U) << "a line that cannot be read has no step";
  EXPECT_EQ(first_line_behind(lines, 30), 4U);
}

}  // namespace
}  // namespace routing::page_runs_test
