// routing analyze attention, health and patterns of a trained run.
#include "cli/generate_fixture.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <string>

namespace routing::analyze_test {
namespace {

class CliAnalyze : public CliGenerate {
 protected:
  // What the command writes when all is well.
  std::string analysed(const std::string& arguments, const std::string& before = "") const {
    const Outcome outcome = run("analyze " + arguments + " --quiet", before);
    EXPECT_EQ(outcome.exit_code, 0) << arguments << "\n" << outcome.err;
    EXPECT_EQ(outcome.err, "") << arguments;
    return outcome.out;
  }
  nlohmann::json object(const std::string& arguments) const {
    return nlohmann::json::parse(analysed(arguments + " --json"));
  }
};

TEST_F(CliAnalyze, AttentionListsWhatHeadsReadAndJsonHasAllOfIt) {
  train_on_bytes(3);
  const nlohmann::json all = object("attention run --text 'a line of text'");
  EXPECT_EQ(all["tokens"], 14);
  EXPECT_EQ(all["position"], 14) << "the token after the text";
  EXPECT_EQ(all["predicts"], "(next)");
  ASSERT_EQ(all["heads"].size(), 8U) << "two layers of four heads";
  for (const auto& head : all["heads"]) {
    double sum = 0.0;
    for (const auto& read : head["reads"]) {
      const int position = read["position"];
      const std::string token = position < 0 ? "(start)" : std::string(1, "a line of text"[position]);
      EXPECT_LT(position, 14);
      EXPECT_EQ(read["token"], token);
      sum += read["weight"].get<double>();
    }
    EXPECT_NEAR(sum, 1.0, 1e-6) << head;
    EXPECT_EQ(head["pattern"] == "routing", head.contains("clusters")) << head;
  }
  const nlohmann::json one = object("attention run --text 'a line of text' --find of --layer 1 --head 2");
  EXPECT_EQ(one["position"], 7);
  EXPECT_EQ(one["predicts"], "o");
  ASSERT_EQ(one["heads"].size(), 1U);
  EXPECT_EQ(one["heads"][0]["pattern"], "routing");
  const std::string lines = analysed("attention run --text 'a line of text' --layer 0 --head 0 --top 2 --position 9");
  EXPECT_EQ(
      lines.rfind("--text: 14 tokens; position 9 predicts \" \"\n\nlayer 0 head 0, local: reads 10 tokens\n  0.", 0),
      0U)
      << lines;
  EXPECT_EQ(times(lines, "\n  0."), 2U) << lines;
  EXPECT_FALSE(contains(lines, "\033")) << "a file is not a terminal: " << lines;
}

TEST_F(CliAnalyze, AttentionReadsFilesStandardInputAndDataAndDrawsItsSequence) {
  train_on_bytes(3);
  write("some", "h\xc3\xa9 said");
  const nlohmann::json file = object("attention run --file some --layer 1 --out a.png --out a.svg");
  EXPECT_EQ(file["tokens"], 8);
  EXPECT_EQ(file["written"], (std::vector<std::string>{"a.png", "a.svg"}));
  EXPECT_EQ(text_of(folder_ / "a.png").substr(1, 3), "PNG");
  EXPECT_TRUE(contains(text_of(folder_ / "a.svg"), "<svg"));
  const std::string from_file = R"(sh -c 'exec "$0" "$@" < some')";
  EXPECT_EQ(nlohmann::json::parse(analysed("attention run - --layer 1 --json", from_file))["heads"], file["heads"]);
  const nlohmann::json data = object("attention run --split test --offset 5 --n 20 --position 7");
  EXPECT_EQ(data["tokens"], 20);
  EXPECT_TRUE(contains(data["text"], "test part, from token 5")) << data["text"];
  const std::string coloured =
      analysed("attention run --file some --color always --head 2 --layer 1", "COLORTERM=truecolor");
  EXPECT_TRUE(contains(coloured, "48;2;255;")) << coloured;
  EXPECT_TRUE(contains(coloured, "\xc3\xa9")) << coloured;
  EXPECT_TRUE(contains(analysed("attention run --file some --color always", "COLORTERM="), "48;5;"));
  EXPECT_FALSE(contains(analysed("attention run --file some --color never"), "\033"));
}

TEST_F(CliAnalyze, AttentionNamesWhatIsNotThere) {
  train_on_bytes(3);
  const auto refused = [&](const std::string& options, const std::vector<std::string>& parts) {
    expect_refused("analyze attention run --quiet " + options, parts);
  };
  refused("--text abc --position 4", {"no position 4", "3 tokens", "0 to 3"});
  refused("--text abc --position -1", {"--position", "-1 is out of range"});
  refused("--text abc --layer 2", {"no layer 2", "0 to 1"});
  refused("--text abc --head 4", {"no head 4", "0 to 3"});
  refused("--text abc --find x", {"'x' is not in its 3 tokens"});
  refused("--text ''", {"--text", "no token"});
  refused("-", {"standard input", "no token"});
  refused("--text abc --position 1 --find a", {"--position and --find"});
  refused("--text abc --file some", {"given more than once"});
  refused("--text abc --split test", {"given more than once"});
  refused("--text abc --out a.jpg", {"a.jpg", ".png or .svg"});
  refused("--split test --offset 100000", {"--offset 100000", "test part has"});
  refused("some", {"unexpected argument 'some'"});
  EXPECT_EQ(run("analyze attention nowhere --text abc").exit_code, 1);
}

TEST_F(CliAnalyze, AttentionOfImagesIsByRowColumnAndChannel) {
  std::string records;
  for (int i = 0; i < 60; ++i) records += std::string(1, '\3') + std::string(3072, static_cast<char>(i));
  write("c/data_batch_1.bin", records);
  train("tiny-cifar10",
        "--set model.image_height=8 --set model.image_width=8 --set data.image_size=8 --data c --steps 2");
  const nlohmann::json all = object("attention run --position 40 --out image.png");
  EXPECT_EQ(all["tokens"], 192);
  EXPECT_EQ(all["predicts"], "row 1 column 5 green") << "40 = 3 (8 + 5) + 1";
  EXPECT_EQ(all["heads"][0]["reads"].back()["position"], 39);
  EXPECT_TRUE(fs::exists(folder_ / "image.png"));
  expect_refused("analyze attention run --quiet --position 192", {"no position 192", "0 to 191"});
  expect_refused("analyze attention run --quiet --text abc", {"reads images, not text"});
  expect_refused("analyze attention run --quiet --find abc", {"reads images", "--position"});
}

TEST_F(CliAnalyze, HealthShowsMeasuresHeadsAndAVerdict) {
  train_on_bytes(6, "--set train.log_every=2 --set train.eval_every=3");
  const nlohmann::json logged = object("health run --out health.png");
  EXPECT_EQ(logged["training"]["tau_drift"]["steps"], (std::vector<double>{2, 4, 6}));
  EXPECT_EQ(logged["evaluation"]["memberships"]["steps"], (std::vector<double>{3, 6}));
  EXPECT_EQ(logged["heads_from"], "checkpoint");
  EXPECT_EQ(logged["heads"].size(), 4U);
  EXPECT_EQ(logged["not_logged"], nlohmann::json::array());
  EXPECT_TRUE(fs::exists(folder_ / "health.png"));
  const nlohmann::json counted = object("health run --split test --limit-tokens 96");
  EXPECT_EQ(counted["heads_from"], "evaluation");
  for (const auto& head : counted["heads"]) {
    double members = 0.0;
    for (const double count : head["members"]) members += count;
    EXPECT_EQ(head["tokens"], 96);
    EXPECT_NEAR(members / 96.0, head["memberships"].get<double>(), 1e-12);
    for (const char* key : {"fallback_fraction", "moving_entropy", "mean_largest_weight"}) {
      EXPECT_GE(head[key].get<double>(), 0.0) << key;
      EXPECT_LE(head[key].get<double>(), 1.0 + 1e-12) << key;
    }
    EXPECT_GT(head["mean_largest_weight"].get<double>(), 0.0);
  }
  EXPECT_EQ(logged["training"]["fallback_fraction"]["steps"], (std::vector<double>{2, 4, 6}));
  EXPECT_EQ(logged["evaluation"]["moving_entropy_min"]["steps"], (std::vector<double>{3, 6}));
  const std::string text = analysed("health run --split test --limit-tokens 96");
  EXPECT_TRUE(text.rfind("run: healthy", 0) == 0 || text.rfind("run: unhealthy: ", 0) == 0) << text;
  EXPECT_TRUE(contains(text, "members of clusters on held-out tokens")) << text;
  write("run/metrics.jsonl", "{\"step\":1,\"routing_tau_drift\":0.9}\n");
  const std::string old = analysed("health run");
  EXPECT_TRUE(contains(old, "still drifting: thresholds move by 0.9000")) << old;
  EXPECT_TRUE(contains(old, "not in metrics.jsonl: routing_occupancy_entropy_min")) << old;
}

TEST_F(CliAnalyze, RunsWithoutRoutedHeadsHaveNoHealthAndPairsNoAttention) {
  train_on_bytes(2, "--set attention.content=full");
  expect_refused("analyze health run", {"run: has no routed heads", "attention.content = routing"});
  fs::rename(folder_ / "run", folder_ / "full");
  train("tiny-copy",
        "--set model.vocab_size=12 --set train.source_length=6 --set train.sequence_length=7 "
        "--set train.shortest_length=0 --set attention.cross_heads=2 --set local.window=4 "
        "--set routing.window=4 --set routing.clusters=2 --steps 2");
  expect_refused("analyze attention run --text 1", {"encoder-decoder", "decoder-only"});
  expect_refused("analyze patterns run --out a.png", {"encoder-decoder", "decoder-only"});
}

TEST_F(CliAnalyze, PatternsOfARunAreDrawnFromItsPlans) {
  train_on_bytes(3);
  const nlohmann::json drawn = object("patterns run --n 24 --split test --offset 3 --head all --out p.png --out p.svg");
  EXPECT_EQ(drawn["run"], "run");
  EXPECT_EQ(drawn["offset"], 3);
  EXPECT_EQ(times(text_of(folder_ / "p.svg"), "<svg"), 1U);
  EXPECT_EQ(analysed("patterns run --n 24 --layer 1 --out q.png"), "q.png\n");
  EXPECT_NE(text_of(folder_ / "p.png"), text_of(folder_ / "q.png"));
  EXPECT_EQ(object("patterns run --out r.png")["n"], 2 * 16) << "so that the end of its largest window is seen";
  EXPECT_EQ(object("patterns --out s.png")["n"], 64);
  expect_refused("analyze patterns run --out a.png --offset 1000000", {"--offset 1000000", "valid part has"});
  expect_refused("analyze patterns run --out a.png --layer 2", {"no layer 2", "0 to 1"});
  expect_refused("analyze patterns run --out a.png --head 9", {"no head 9", "0 to 3"});
  expect_refused("analyze patterns run --out a.png --head none", {"--head", "'none' is not a whole number"});
  expect_refused("analyze patterns --out a.png --layer 1", {"--layer needs a RUN"});
}

}  // namespace
}  // namespace routing::analyze_test
