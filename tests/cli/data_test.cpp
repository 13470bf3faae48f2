// Data sets as a user meets them: looked at, prepared, trained on, killed, resumed, evaluated; and every broken file
// with its one line.
#include "cli/program_fixture.h"
#include "test_paths.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <string>
#include <vector>

namespace routing::data_test {
namespace {

using Json = nlohmann::json;

// Any tiny preset made so small that a step takes milliseconds.
const std::string kSmall =
    " --quiet --set model.layers=2 --set model.width=32 --set model.embedding_width=0 --set model.feedforward_width=64"
    " --set attention.heads=4 --set attention.content_heads=2 --set local.window=16 --set routing.window=16"
    " --set routing.clusters=4 --set train.sequence_length=48 --set train.batch_size=2 --set train.log_every=2"
    " --set train.eval_every=4 --set train.eval_tokens=96 --set train.checkpoint_every=3 --set train.warmup_steps=2"
    " --set train.decay_steps=1000 --set data.vocabulary_size=400 --set data.cache=cache ";

class CliData : public Cli {
 protected:
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  void write_wikitext() const {
    std::string text;
    for (int i = 0; i < 300; ++i) text += " line " + std::to_string(i * i % 17) + " of a text \n";
    write("wiki/wiki.train.tokens", text);
    write("wiki/wiki.valid.tokens", text.substr(0, text.find('\n', 500) + 1));
    write("wiki/wiki.test.tokens", text.substr(0, text.find('\n', 900) + 1));
  }
  static std::string cifar(int records) {
    std::string file;
    for (int i = 0; i < records; ++i) file += std::string(1, '\3') + std::string(3072, static_cast<char>(i));
    return file;
  }
  Json json_of(const std::string& arguments) const {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << arguments << "\n" << outcome.err;
    return Json::parse(outcome.out, nullptr, false);
  }
  // One line of error, with all of these in it; exit code 1 or 2.
  void expect_one_line(const std::string& arguments, const std::vector<std::string>& parts) const {
    const Outcome outcome = run(arguments);
    EXPECT_TRUE(outcome.exit_code == 1 || outcome.exit_code == 2) << arguments << ": " << outcome.exit_code;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_EQ(outcome.err.rfind("routing: error: ", 0), 0U) << outcome.err;
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
    for (const std::string& part : parts) EXPECT_TRUE(contains(outcome.err, part)) << part << "\n" << outcome.err;
  }
};

TEST_F(CliData, InfoCountsTokensAndSaysWhatIsMissing) {
  write_wikitext();
  const Json whole = json_of("--quiet data info wiki --cache cache --json");
  EXPECT_EQ(whole["format"], "wikitext");
  EXPECT_EQ(whole["tokens"], "words");
  EXPECT_EQ(whole["parts"]["train"]["tokens"], 300 * 6);
  EXPECT_EQ(whole["whole"], true);
  EXPECT_FALSE(whole.contains("missing"));
  fs::remove(folder_ / "wiki/wiki.train.tokens");
  const Json partial = json_of("--quiet data info wiki --cache cache --json");
  EXPECT_EQ(partial["whole"], false);
  EXPECT_EQ(partial["missing"], "no wiki.train.tokens; train is the first 90 % of valid");
  const std::string table = run("--quiet data info wiki --cache cache").out;
  EXPECT_TRUE(contains(table, "one <eos> per line counted")) << table;
  EXPECT_TRUE(contains(table, "figures are labelled partial data: no wiki.train.tokens")) << table;
  expect_one_line("--quiet data info wiki --cache cache --require-whole", {"is not whole: no wiki.train.tokens"});
}

TEST_F(CliData, PreparedDataTrainAnywhere) {
  write_wikitext();
  const Json prepared = json_of("--quiet data prepare wiki --out p --json");
  EXPECT_EQ(prepared["vocabulary_size"], 15) << "<eos> line of a text <unk> and 9 squares";
  fs::remove_all(folder_ / "wiki");
  const Outcome trained = run("train --preset tiny-wikitext103" + kSmall + "--data p --out r --steps 4");
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_TRUE(fs::exists(folder_ / "r/vocabulary.txt"));
  EXPECT_TRUE(contains(trained.out, "perplexity")) << trained.out;
  const Json scored = json_of("--quiet eval r --json");
  EXPECT_GT(scored["perplexity"], 1.0);
  EXPECT_GT(scored["bits_per_byte"], 0.0);
  EXPECT_EQ(scored["validity"], "causal");
  EXPECT_FALSE(scored.contains("data_label"));
}

TEST_F(CliData, PartialDataAreLabelledEverywhere) {
  write("c/data_batch_1.bin", cifar(60));
  const std::string images = "--set model.image_height=16 --set model.image_width=16 --set data.image_size=16 ";
  const Outcome trained = run("train --preset tiny-cifar10" + kSmall + images + "--data c --out r --steps 4");
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_TRUE(contains(trained.out, "bits/dim")) << trained.out;
  EXPECT_TRUE(contains(trained.out, "causal, partial data")) << trained.out;
  EXPECT_TRUE(contains(text_of(folder_ / "r/metrics.jsonl"), R"("data_label":"partial data")"));
  EXPECT_TRUE(contains(text_of(folder_ / "r/metrics.jsonl"), "\"eval_bits_per_dim\""));
  EXPECT_TRUE(contains(text_of(folder_ / "r/checkpoints/step-00000004/model.safetensors"), "partial data"));
  const Json scored = json_of("--quiet eval r --json");
  EXPECT_EQ(scored["data_label"], "partial data");
  EXPECT_GT(scored["bits_per_dim"], 0.0);
  EXPECT_TRUE(contains(run("--quiet eval r").out, "causal, partial data"));
  expect_one_line("--quiet eval r --require-whole", {"is not whole"});
}

// Before, the last 5 % of a foreign file were scored without a word.
TEST_F(CliData, ForeignFilesAreScoredWholeUnlessAPartIsAskedFor) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "line " + std::to_string(i) + " of a text\n";
  write("own.txt", text);
  write("foreign.txt", text.substr(0, 2000));
  const std::string aloud = kSmall.substr(std::string(" --quiet").size());
  const Outcome trained = run("train --preset tiny-enwik8" + aloud + "--data own.txt --out r --steps 4");
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_TRUE(contains(trained.err, "train, valid and test are cut from one piece by ")) << trained.err;
  const Json whole = json_of("--quiet eval r --data foreign.txt --json");
  EXPECT_EQ(whole["tokens"], 2000);
  EXPECT_EQ(whole["split"], "all");
  EXPECT_EQ(json_of("--quiet eval r --data foreign.txt --split test --json")["tokens"], 100);
  EXPECT_EQ(json_of("--quiet eval r --json")["split"], "test");
}

TEST_F(CliData, EvaluationTakesTheVocabularyOfTheRunAndRefusesAnother) {
  write_wikitext();
  ASSERT_EQ(run("train --preset tiny-wikitext103" + kSmall + "--data wiki --out r --steps 4").exit_code, 0);
  std::string words;
  for (int i = 0; i < 40; ++i) words += " quite other words \n";
  write("other/wiki.train.tokens", words);
  write("other/wiki.valid.tokens", " line 4 of quite another text \n");
  write("other/wiki.test.tokens", " line 4 of quite another text \n");
  EXPECT_EQ(json_of("--quiet eval r --data other --json")["tokens"], 7);
  ASSERT_EQ(run("--quiet data prepare other --out p").exit_code, 0);
  expect_one_line("--quiet eval r --data p", {"p: its tokens are those of vocabulary ", "learned those of ",
                                              "give the vocabulary of the run with --vocabulary FILE"});
  expect_one_line(
      "train" + kSmall + "--preset tiny-wikitext103 --set model.vocab_size=15 --data p --out r --resume auto --steps 8",
      {"p: its tokens are those of vocabulary", "learned those of"});
  expect_one_line("--quiet eval r --data other --vocabulary nowhere.txt", {"nowhere.txt: cannot be read"});
  expect_one_line("--quiet audit r --data p", {"p: its tokens are those of vocabulary", "--vocabulary FILE"});
  expect_one_line("--quiet audit r --data other --vocabulary nowhere.txt", {"nowhere.txt: cannot be read"});
}

TEST_F(CliData, PresetsThatMakeUpTheirDataTakeNoPath) {
  write("text", "some text of one's own\n");
  for (const char* preset : {"tiny-copy", "tiny-recall"}) {
    expect_refused(std::string("train --data text --out run --steps 1 --preset ") + preset,
                   {"data.path is", "makes up its data"});
  }
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

TEST_F(CliData, AnEncoderDecoderTrainsOnMadeUpPairsAndIsScored) {
  const std::string small =
      " --preset tiny-copy --quiet --set model.width=32 --set model.feedforward_width=32 --set train.source_length=12"
      " --set train.sequence_length=13 --set train.shortest_length=4 --set local.window=4 --set routing.window=4"
      " --set routing.clusters=2 --set train.batch_size=2 --set train.eval_tokens=26 --set train.warmup_steps=1 ";
  const Outcome trained = run("train" + small + "--out r --steps 3");
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_TRUE(contains(text_of(folder_ / "r/metrics.jsonl"), "\"eval_accuracy\""));
  const Json scored = json_of("--quiet eval r --limit-tokens 26 --json");
  EXPECT_EQ(scored["tokens"], 26);
  EXPECT_GE(scored["accuracy"], 0.0);
  expect_one_line("--quiet eval r --data r", {"was trained on made-up data"});
  const Outcome resumed = run("train --quiet --out r --resume auto --steps 4");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
}

TEST_F(CliData, BrokenFilesAreOneClearLine) {
  write("short/data_batch_1.bin", cifar(2).substr(0, 5000));
  expect_one_line("--quiet data info short --cache k",
                  {"data_batch_1.bin", "5000 bytes", "3073", "10000 records of 3073 bytes"});
  write("label/test_batch.bin", "\x0B" + std::string(3072, '\0'));
  expect_one_line("--quiet data info label --cache k", {"test_batch.bin", "label"});
  write("pg/train/1.txt", "a book\n");
  expect_one_line("--quiet data info pg --format pg19 --cache k", {"validation", "train/, validation/"});
  write("notes.txt", "not UTF-8 \xFF\n");
  expect_one_line("--quiet data info notes.txt --format text --cache k", {"notes.txt", "10", "data.tokens=bytes"});
  write("x.npz", "this is no archive");
  expect_one_line("--quiet data info x.npz --cache k", {"x.npz"});
  write("png/a.png", "no picture");
  expect_one_line("--quiet data info png --cache k", {"a.png"});
  write_wikitext();
  ASSERT_EQ(run("--quiet data prepare wiki --out p").exit_code, 0);
  std::fstream(folder_ / "p/valid.shard", std::ios::in | std::ios::out | std::ios::binary).seekp(140).put('\x55');
  expect_one_line("--quiet data info p", {"valid.shard: the ids have checksum ", "but the header says "});
  expect_one_line("train --preset tiny-wikitext103" + kSmall + "--data p --out r",
                  {"valid.shard: the ids have checksum"});
  EXPECT_FALSE(fs::exists(folder_ / "r"));
  expect_one_line("--quiet data prepare wiki --out p", {"p: is there already and not empty"});
  fs::create_directories(folder_ / "nothing");
  expect_one_line("--quiet data info nothing", {"nothing: holds no known data set"});
  expect_one_line("--quiet data info nowhere", {"nowhere: is not there; check the name"});
}

// The five sets, each with its preset made small: prepared, trained, killed, resumed, evaluated.
struct RealSet {
  const char* name;
  const char* preset;
  const char* path;
  const char* measure;
  const char* settings;
};

void PrintTo(const RealSet& set, std::ostream* out) {
  *out << set.name;
}

class CliRealData : public CliData, public testing::WithParamInterface<RealSet> {};

TEST_P(CliRealData, IsPreparedTrainedKilledResumedAndEvaluated) {
  const char* const root = std::getenv("ROUTING_TEST_DATA");
  if (root == nullptr) GTEST_SKIP() << "ROUTING_TEST_DATA is not set";
  const RealSet& set = GetParam();
  const std::string source = std::string(root) + "/" + set.path;
  std::string data = source;
  if (std::string(set.name) != "enwik8") {
    ASSERT_EQ(run("--quiet data prepare " + source + " --vocabulary-size 400 --out p").exit_code, 0) << set.name;
    data = "p";
  }
  const std::string train = "train --preset " + std::string(set.preset) + kSmall + set.settings + " --data " + data;
  const std::string straight = run(train + " --out straight --steps 8").err;
  // Killed as soon as it has a checkpoint, and gone on with.
  const std::string killed =
      "cd '" + folder_.string() + "' && { '" + ROUTING_PROGRAM + "' " + train +
      " --out r --steps 1000000 > .o 2> .e & p=$!; "
      "while kill -0 $p 2> /dev/null && ! ls r/checkpoints/*/DONE > /dev/null 2>&1; do sleep 0.01; "
      "done; kill -9 $p; wait $p; } 2> /dev/null";
  (void)std::system(killed.c_str());
  ASSERT_TRUE(fs::exists(folder_ / "r/config.toml")) << text_of(folder_ / ".e") << straight;
  // A run that was faster than the kill ends later; what counts is that it goes on.
  const Outcome resumed = run("train --quiet --out r --resume auto --steps 100000 --minutes 0.01");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  const Json scored = json_of("--quiet eval straight --limit-tokens 4000 --json");
  EXPECT_GT(scored[set.measure], 0.0) << scored;
  EXPECT_EQ(scored["validity"], "causal");
  EXPECT_EQ(scored.value("data_label", "whole"), std::string(set.name) == "wikitext" ? "whole" : "partial data");
}

INSTANTIATE_TEST_SUITE_P(Sets, CliRealData,
                         testing::Values(RealSet{"enwik8", "tiny-enwik8", "enwik8/enwik8", "bits_per_byte", ""},
                                         RealSet{"wikitext", "tiny-wikitext103", "wikitext-2", "perplexity", ""},
                                         RealSet{"pg19", "tiny-pg19", "pg19", "word_perplexity", ""},
                                         RealSet{"cifar10", "tiny-cifar10", "cifar10", "bits_per_dim", ""},
                                         RealSet{"imagenet64", "tiny-imagenet64", "imagenet64", "bits_per_dim", ""}),
                         [](const auto& set) { return std::string(set.param.name); });

}  // namespace
}  // namespace routing::data_test
