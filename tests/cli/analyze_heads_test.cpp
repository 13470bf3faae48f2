// routing analyze jsd and recall on a small model that was trained through the program.
#include "cli/generate_fixture.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>

namespace routing::analyze_heads_test {
namespace {

class CliHeads : public CliGenerate {
 protected:
  nlohmann::json json(const std::string& arguments) const {
    const Outcome outcome = run("analyze --quiet " + arguments + " --json");
    EXPECT_EQ(outcome.exit_code, 0) << arguments << "\n" << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return nlohmann::json::parse(outcome.out);
  }
};

TEST_F(CliHeads, JsdPrintsTheTableBesideThePublishedOneIfAskedAndDrawsTheMatrix) {
  train_on_bytes(3);
  const std::string command = "analyze jsd run --quiet --sequences 3 --queries 20 --out heads.png --out heads.svg";
  const std::string own = run(command).out;
  EXPECT_TRUE(contains(own, "local | routing")) << own;
  EXPECT_FALSE(contains(own, "published") || contains(own, "0.0038") || contains(own, "not a target")) << own;
  const Outcome outcome = run(command + " --published");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* part : {"layer", "local | local", "local | routing", "routing | routing", "0.0038 ± 0.0018",
                           "0.6674 ± 0.0153", "not a target", "3 sequences of 48 tokens, 20 queries in each",
                           "over 10 draws", "heads.png", "heads.svg", "causal"}) {
    EXPECT_TRUE(contains(outcome.out, part)) << part << " in " << outcome.out;
  }
  EXPECT_FALSE(contains(outcome.out, "0.2164")) << "the model has no third layer";
  EXPECT_EQ(text_of(folder_ / "heads.png").substr(1, 3), "PNG");
  EXPECT_TRUE(contains(text_of(folder_ / "heads.svg"), "<svg"));

  const nlohmann::json result = json("jsd run --sequences 3 --queries 0 --draws 5");
  EXPECT_EQ(result["queries"], 48);
  EXPECT_EQ(result["draws"], 5);
  ASSERT_EQ(result["layers"].size(), 2U);
  for (const auto& layer : result["layers"]) {
    EXPECT_EQ(layer["patterns"], (std::vector<std::string>{"local", "local", "routing", "routing"}));
    ASSERT_EQ(layer["matrix"].size(), 4U);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(layer["matrix"][i][i], 0.0);
      for (std::size_t j = 0; j < 4; ++j) EXPECT_LE(layer["matrix"][i][j], 0.69315);
    }
    EXPECT_GE(layer["local_content"]["deviation"], 0.0);
  }
  EXPECT_EQ(json("jsd run --sequences 3 --queries 0 --draws 5 --threads 2"), result);
  EXPECT_NE(json("jsd run --sequences 3 --queries 0 --draws 5 --seed 2"), result);
}

TEST_F(CliHeads, RecallPrintsSharesWithTheirBaselinesAndDrawsThem) {
  train_on_bytes(3);
  const Outcome outcome = run("analyze recall run --quiet --sequences 2 --queries 20 --out recall.png");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* part : {"softmax mass", "top 1 products", "top 8 products", "top 64 products", "2 local",
                           "2 routing", "2 sequences of 48 tokens, 20 queries in each", "recall.png"}) {
    EXPECT_TRUE(contains(outcome.out, part)) << part << " in " << outcome.out;
  }
  EXPECT_EQ(text_of(folder_ / "recall.png").substr(1, 3), "PNG");

  const nlohmann::json result = json("recall run --sequences 2 --queries 0 --split valid");
  EXPECT_EQ(result["queries"], 47);
  EXPECT_EQ(result["split"], "valid");
  for (const auto& layer : result["layers"]) {
    ASSERT_EQ(layer["heads"].size(), 4U);
    // A sliding window holds the most recent keys.
    EXPECT_NEAR(layer["heads"][0]["plan"]["mass"], layer["heads"][0]["recent"]["mass"].get<double>(), 1e-12);
    for (const auto& head : layer["heads"]) {
      for (const char* key : {"mass", "top_1", "top_8", "top_64"}) {
        EXPECT_GE(head["plan"][key], 0.0);
        EXPECT_LE(head["plan"][key], 1.0 + 1e-12);
      }
    }
  }
}

TEST_F(CliHeads, AFullHeadKeepsEverythingAndALocalModelHasNoContentHeads) {
  train_on_bytes(1, "--set attention.content=full");
  const nlohmann::json full = json("recall run --sequences 1");
  EXPECT_EQ(full["layers"][1]["heads"][3]["pattern"], "full");
  EXPECT_EQ(full["layers"][1]["heads"][3]["plan"]["mass"], 1.0);
  EXPECT_EQ(full["layers"][1]["heads"][3]["plan"]["top_8"], 1.0);
  fs::remove_all(folder_ / "run");
  train_on_bytes(1, "--set attention.content_heads=0");
  const nlohmann::json local = json("jsd run --sequences 1");
  EXPECT_TRUE(local["layers"][0]["local_content"].is_null());
  EXPECT_GE(local["layers"][0]["local_local"]["mean"], 0.0);
}

TEST_F(CliHeads, MistakesAreNamedBeforeAnythingIsWritten) {
  train_on_bytes(1);
  for (const std::string command : {"jsd", "recall"}) {
    expect_refused("analyze " + command,
                   {"error: analyze " + command + ": RUN is missing: the folder that routing train --out wrote"});
    expect_refused("analyze " + command + " run --out heads.gif", {"heads.gif"});
    expect_refused("analyze " + command + " run --out a.png --sequence-length 100000",
                   {"100000", "another part or shorter"});
    expect_refused("analyze " + command + " run --sequences 0", {"--sequences"});
    EXPECT_EQ(run("analyze " + command + " nowhere").exit_code, 1);
  }
  EXPECT_FALSE(fs::exists(folder_ / "a.png"));
}

}  // namespace
}  // namespace routing::analyze_heads_test
