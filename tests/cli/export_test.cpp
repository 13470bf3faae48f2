// routing export, and what the other commands make of an exported model.
#include "cli/generate_fixture.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <string>

namespace routing::export_test {
namespace {

class CliExport : public CliGenerate {
 protected:
  Outcome succeed(const std::string& arguments) const {
    Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << arguments << "\n" << outcome.err;
    return outcome;
  }
  nlohmann::json json_of(const std::string& arguments) const {
    return nlohmann::json::parse(succeed(arguments + " --json --quiet").out);
  }
  // The same without the paths of model and data.
  nlohmann::json figures_of(const std::string& arguments) const {
    nlohmann::json object = json_of(arguments);
    for (const char* key : {"model", "data", "run"}) object.erase(key);
    return object;
  }
  // As if the colleague had another machine: the run and its data are somewhere else.
  void move_away(const std::string& name) const { fs::rename(folder_ / name, folder_ / ("gone-" + name)); }
  void expect_no_path_of_this_machine(const std::string& name) const {
    for (const auto& entry : fs::directory_iterator(folder_ / name)) {
      EXPECT_FALSE(contains(text_of(entry.path()), folder_.string())) << entry.path();
    }
  }
};

TEST_F(CliExport, AModelOfBytesWorksAnywhereWithTheSameBits) {
  train_on_bytes(6);
  const Outcome made = succeed("export run --out colleague");
  for (const char* part : {"colleague\n", "model.safetensors", "README.md", "SHA256SUMS"}) {
    EXPECT_TRUE(contains(made.out, part)) << part << " in " << made.out;
  }
  expect_no_path_of_this_machine("colleague");
  EXPECT_FALSE(fs::exists(folder_ / "colleague/state.safetensors"));
  const std::string check = "cd '" + (folder_ / "colleague").string() + "' && sha256sum --quiet -c SHA256SUMS";
  EXPECT_EQ(std::system(check.c_str()), 0);
  const std::string text = generated("--prompt 'line 4' -n 40 --seed 5");
  const nlohmann::json scored = figures_of("eval run --split test");
  const nlohmann::json heads = figures_of("analyze jsd run --sequences 1");
  move_away("run");
  fs::rename(folder_ / "text", folder_ / "elsewhere");
  EXPECT_EQ(succeed("generate --quiet colleague --prompt 'line 4' -n 40 --seed 5").out, text);
  EXPECT_EQ(figures_of("eval colleague --data elsewhere --split test"), scored);
  EXPECT_EQ(figures_of("analyze jsd colleague --data elsewhere --sequences 1"), heads);
  EXPECT_EQ(succeed("analyze attention colleague --text 'a line'").exit_code, 0);
  EXPECT_EQ(succeed("analyze health colleague").exit_code, 0);
  EXPECT_EQ(json_of("analyze curves colleague")["runs"][0]["unit"], "bits_per_byte");
  EXPECT_EQ(json_of("runs colleague")[0]["state"], "exported");
  succeed("info colleague");
  const Outcome nameless = run("eval colleague");
  EXPECT_EQ(nameless.exit_code, 2);
  EXPECT_TRUE(contains(nameless.err, "names no data; give some with --data PATH")) << nameless.err;
  const Outcome trained = run("train --out colleague --resume auto");
  EXPECT_EQ(trained.exit_code, 2);
  EXPECT_NE(trained.err.find("colleague"), std::string::npos) << trained.err;
}

TEST_F(CliExport, TheCardSaysWhatTheModelIsAndWhatItsFiguresAreWorth) {
  train_on_bytes(6);
  succeed("export run");
  const std::string card = text_of(folder_ / "run-export/README.md");
  const nlohmann::json best = json_of("analyze curves run")["runs"][0];
  for (const std::string& part :
       {std::string("# run-export"), std::string("decoder-only of bytes, 2 layers of width 32"),
        std::string("| data | text, split "), std::string("| trained | 6 steps"),
        std::string(" bits/byte at step 6; causal"), std::string("| validity | causal |"),
        std::string("| audit | not audited |"), std::string("routing generate . --prompt"),
        std::string("states no licence"), std::to_string(best["best"].get<double>()).substr(0, 5)}) {
    EXPECT_TRUE(contains(card, part)) << part << " in\n" << card;
  }
}

TEST_F(CliExport, AnArchiveUnpacksToTheFolderAndIsNamedAsOne) {
  train_on_bytes(2);
  const nlohmann::json made = json_of("export run --checkpoint last --out small.zip");
  EXPECT_EQ(made["export"], "small.zip");
  EXPECT_EQ(made["files"][0]["name"], "model.safetensors");
  const std::string unpack = "cd '" + folder_.string() + "' && /usr/bin/python3 -m zipfile -e small.zip .";
  ASSERT_EQ(std::system(unpack.c_str()), 0);
  EXPECT_EQ(succeed("generate --quiet small -n 10").out, generated("--checkpoint last -n 10"));
  expect_mistake(1, "small.zip", {"small.zip: is an archive; unpack it (unzip small.zip)"});
}

TEST_F(CliExport, WordsBringTheirVocabulary) {
  std::string text;
  for (int i = 0; i < 600; ++i) text += " the cat sat on mat " + std::to_string(i % 7) + " \n";
  for (const char* part : {"train", "valid", "test"}) write("set/wiki." + std::string(part) + ".tokens", text);
  train("tiny-wikitext103", "--data set --steps 3");
  const std::string sample = generated("--prompt 'the cat' -n 8");
  const nlohmann::json scored = figures_of("eval run");
  succeed("export run --out colleague");
  expect_no_path_of_this_machine("colleague");
  move_away("run");
  fs::remove_all(folder_ / "cache");
  fs::rename(folder_ / "set", folder_ / "elsewhere");
  EXPECT_EQ(succeed("generate --quiet colleague --prompt 'the cat' -n 8").out, sample);
  EXPECT_EQ(figures_of("eval colleague --data elsewhere"), scored);
}

TEST_F(CliExport, NothingElseIsOverwritten) {
  train_on_bytes(2);
  write("mine/thesis.tex", "years");
  expect_refused("export run --out mine --force", {"mine: is there and holds something else", "choose another --out"});
  succeed("export run --out colleague");
  expect_refused("export run --out colleague", {"colleague: is there already", "--force"});
  expect_refused("export run --out run --force", {"run: is there and holds something else"});
  succeed("export run --out colleague --force");
  succeed("export colleague --out second");
  EXPECT_EQ(text_of(folder_ / "second/model.safetensors"), text_of(folder_ / "colleague/model.safetensors"));
  EXPECT_EQ(text_of(folder_ / "mine/thesis.tex"), "years");
  const Outcome missing = run("export nowhere");
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_TRUE(contains(missing.err, "nowhere: holds no run")) << missing.err;
}

}  // namespace
}  // namespace routing::export_test
