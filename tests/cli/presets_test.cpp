// `routing presets` and what `routing info` says about a model.
#include "cli/program_fixture.h"

#include <nlohmann/json.hpp>

#include <string>

namespace routing::presets_test {
namespace {

using Json = nlohmann::json;

TEST_F(Cli, PresetsListsEveryOneWithItsFacts) {
  const Json rows = Json::parse(run("presets --json").out);
  ASSERT_GE(rows.size(), 40U);
  for (const Json& row : rows) {
    EXPECT_GT(row["parameters"].get<double>(), 250'000) << row;
    EXPECT_GE(row["summary"].get<std::string>().size(), 20U) << row;
  }
  const Outcome table = run("presets pg19-code");
  EXPECT_EQ(table.exit_code, 0);
  EXPECT_TRUE(contains(table.out, "490.7 M")) << table.out;
  EXPECT_TRUE(contains(table.out, "selection reads the future")) << table.out;
  EXPECT_EQ(table.err, "");
}

TEST_F(Cli, PresetsTakesAPartOfTheNames) {
  const Json rows = Json::parse(run("presets tiny-cifar --json").out);
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[0]["name"], "tiny-cifar10");
  EXPECT_EQ(rows[1]["name"], "tiny-cifar10-full");
  EXPECT_TRUE(contains(run("presets tiny-wikitext103").out, " + 129 per word"));
  expect_refused("presets nosuch", {"no name has 'nosuch'"});
}

TEST_F(Cli, PresetsShowsTheFileOfOne) {
  const Outcome shown = run("presets --show cifar10-random");
  EXPECT_EQ(shown.exit_code, 0);
  EXPECT_TRUE(contains(shown.out, "base = \"cifar10-paper\"\nname = \"cifar10-random\"\n")) << shown.out;
  expect_refused("presets --show cifar10-randm", {"cifar10-randm", "did you mean 'cifar10-random'?"});
}

TEST_F(Cli, InfoOfAPresetAddsUp) {
  const Json info = Json::parse(run("info --preset pg19-code --json").out);
  const Json& count = info["parameters"];
  EXPECT_EQ(count["total"], 490701884);
  std::int64_t sum = 0;
  for (const char* part : {"embedding", "attention", "feedforward", "norms", "output"}) {
    sum += count[part].get<std::int64_t>();
  }
  EXPECT_EQ(sum, 490701884);
  ASSERT_EQ(info["layers"].size(), 2U);
  EXPECT_EQ(info["layers"][1], Json::parse(R"({"first":20,"last":21,"groups":[
      {"pattern":"local","heads":6,"keys":512,"lists":1},{"pattern":"routing","heads":2,"keys":512,"lists":16}]})"));
  EXPECT_EQ(info["memory"]["weights_bytes"], 4 * 490701884LL);
  EXPECT_GT(info["memory"]["total_bytes"], info["memory"]["activations_bytes"]);
}

TEST_F(Cli, InfoFollowsTheSettings) {
  const auto memory = [&](const std::string& settings) {
    return Json::parse(run("info --preset tiny-enwik8 --json " + settings).out)["memory"];
  };
  const Json small = memory("");
  EXPECT_EQ(memory("--set train.batch_size=8")["activations_bytes"],
            2 * small["activations_bytes"].get<std::int64_t>());
  EXPECT_LT(memory("--set model.checkpoint_activations=true")["activations_bytes"], small["activations_bytes"]);
  EXPECT_LT(memory("--set train.optimizer=adafactor")["optimizer_bytes"], small["optimizer_bytes"]);
  const Outcome table = run("info --preset tiny-enwik8");
  EXPECT_TRUE(contains(table.out, "layers 2..3")) << table.out;
  EXPECT_TRUE(contains(table.out, "8 local (up to 128 keys) + 2 routing (up to 128 keys in each of up to 4 lists)"))
      << table.out;
}

TEST_F(Cli, InfoCountsTheKeysOfAMemory) {
  const Outcome info =
      run("info --json --preset tiny-enwik8 --set attention.content=full --set train.sequence_length=100 --set "
          "memory.length=64 --set train.order=contiguous --set "
          "memory.compressed=8");
  for (const Json& layer : Json::parse(info.out)["layers"]) {
    for (const Json& group : layer["groups"]) {
      EXPECT_EQ(group["keys"], group["pattern"] == "full" ? 172 : 128) << layer;
    }
  }
}

TEST_F(Cli, InfoKnowsTheReachOfCellsAndBlocks) {
  const auto groups = [&](const std::string& settings) {
    return Json::parse(run("info --json " + settings).out)["layers"];
  };
  // 1000 tokens: seven cells of 128, and 104 tokens of the eighth, 8 of which sum it up.
  const Json turns = groups(
      "--preset tiny-enwik8 --set train.sequence_length=1000 --set attention.content=fixed --set "
      "attention.content_layers=odd --set attention.content_heads=8 --set attention.add_content=false --set "
      "fixed.stride=128 --set fixed.summary=32 --set local.form=block --set local.window=128 --set local.flange=0");
  ASSERT_EQ(turns.size(), 4U);
  EXPECT_EQ(turns[0]["groups"], Json::parse(R"([{"pattern":"local","heads":8,"keys":128,"lists":1}])"));
  EXPECT_EQ(turns[1]["groups"], Json::parse(R"([{"pattern":"fixed","heads":8,"keys":232,"lists":1}])"));
  EXPECT_EQ(turns[2], Json::parse(R"({"first":2,"last":2,"groups":)" + turns[0]["groups"].dump() + "}"));
  const Json image = groups(
      "--preset cifar10-local --set attention.content=local2d --set attention.content_heads=4 --set "
      "local2d.columns=16 --set local2d.beside=16");
  EXPECT_EQ(image.back()["groups"].back()["keys"], 3 * (8 + 8) * 32) << "no wider than the image";
}

}  // namespace
}  // namespace routing::presets_test
