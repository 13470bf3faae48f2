// One's own data as a user brings them: six tries that succeed at the first command, several paths, pipes, and paths in
// a file of configuration.
#include "cli/program_fixture.h"
#include "routing/data/images/png_image.h"
#include "test_paths.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace routing::own_data_test {
namespace {

using Json = nlohmann::json;

// A model so small that a step takes milliseconds; all else is as one types it.
const std::string kSmall =
    " --set model.layers=2 --set model.width=32 --set model.embedding_width=0 --set model.feedforward_width=64"
    " --set attention.heads=4 --set attention.content_heads=2 --set local.window=16 --set routing.window=16"
    " --set routing.clusters=8 --set train.sequence_length=48 --set train.batch_size=2 --set train.log_every=2"
    " --set train.eval_every=4 --set train.eval_tokens=96 --set train.checkpoint_every=2 --set train.warmup_steps=2"
    " --set train.decay_steps=1000 --steps 4 ";

class OwnData : public Cli {
 protected:
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  static std::string lines(int count, const std::string& words = "of a text") {
    std::string text;
    for (int i = 0; i < count; ++i) text += "line " + std::to_string(i * i % 17) + " " + words + "\n";
    return text;
  }
  // A command as it is typed, pipes and all; standard input is empty unless the command says otherwise.
  Outcome type(const std::string& command) const {
    write(".command", command);
    const fs::path program = ROUTING_PROGRAM;
    const std::string line = "cd '" + folder_.string() + "' && PATH='" + program.parent_path().string() +
                             "':\"$PATH\" XDG_CACHE_HOME=.cache bash .command > .stdout 2> .stderr < /dev/null";
    const int status = std::system(line.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text_of(folder_ / ".stdout"), text_of(folder_ / ".stderr")};
  }
  Json json_of(const std::string& command) const {
    const Outcome outcome = type(command + " --json");
    EXPECT_EQ(outcome.exit_code, 0) << command << "\n" << outcome.err;
    return Json::parse(outcome.out, nullptr, false);
  }
  // Trains, says how the data were cut, and can be evaluated; gives the head of the training.
  std::string trains_and_evaluates(const std::string& command, const std::string& measure) const {
    const Outcome trained = type(command);
    EXPECT_EQ(trained.exit_code, 0) << command << "\n" << trained.err;
    const Json scored = json_of("routing eval run --quiet");
    EXPECT_GT(scored.value(measure, 0.0), 0.0) << scored;
    return trained.err;
  }
  void expect_error(const std::string& command, const std::vector<std::string>& parts) const {
    const Outcome outcome = type(command);
    EXPECT_TRUE(outcome.exit_code == 1 || outcome.exit_code == 2) << command << ": " << outcome.exit_code;
    EXPECT_EQ(outcome.out, "") << command;
    EXPECT_EQ(outcome.err.rfind("routing: error: ", 0), 0U) << outcome.err;
    for (const std::string& part : parts) EXPECT_TRUE(contains(outcome.err, part)) << part << "\n" << outcome.err;
  }
  std::vector<std::string> names_in(const std::string& folder) const {
    std::vector<std::string> names;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder_ / folder, none)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  const std::string bytes_ = "routing train --preset tiny-enwik8 --out run" + kSmall;
};

TEST_F(OwnData, AFolderLikePennTreebankAsWords) {
  write("ptb/ptb.train.txt", lines(300));
  write("ptb/ptb.valid.txt", lines(30));
  write("ptb/ptb.test.txt", lines(40));
  write("ptb/README", "what this is\n");
  const std::string head =
      trains_and_evaluates("routing train --data ptb --tokens words --out run" + kSmall, "perplexity");
  EXPECT_TRUE(contains(head, "1800 words in train, 180 words in valid, 240 words in test")) << head;
  EXPECT_TRUE(contains(head, "1 file is about the data and left out")) << head;
  EXPECT_EQ(json_of("routing eval run --quiet")["tokens"], 240);
}

TEST_F(OwnData, ANestedFolderOfCAsBytes) {
  write("code/main.c", lines(60, "of = main();"));
  write("code/deep/below/list.c", lines(60, "of = list();"));
  write("code/test/list_test.c", lines(20, "of = test();"));
  write("code/deep/program.o", std::string("\x7f\0ELF", 5));
  const std::string head = trains_and_evaluates("routing train --data code --out run" + kSmall, "bits_per_byte");
  EXPECT_TRUE(contains(head, "1 binary file is left out, 1 file is in a folder called valid or test")) << head;
}

TEST_F(OwnData, Csv) {
  write("table.csv", "id,words\n" + lines(150, "of,a,table"));
  trains_and_evaluates("routing train --data table.csv --out run" + kSmall, "bits_per_byte");
}

TEST_F(OwnData, AFolderOfPngOfOneSize) {
  fs::create_directories(folder_ / "pictures");
  for (std::uint8_t i = 0; i < 60; ++i) {
    write_png(folder_ / "pictures" / (std::to_string(i) + ".png"),
              {.shape = {8, 8}, .values = std::vector<std::uint8_t>(192, i)});
  }
  const std::string head = trains_and_evaluates("routing train --data pictures --out run" + kSmall, "bits_per_dim");
  EXPECT_TRUE(contains(head, "pictures: images")) << head;
}

TEST_F(OwnData, ACompressedText) {
  write("text", lines(200));
  ASSERT_EQ(type("gzip text").exit_code, 0);
  trains_and_evaluates("routing train --data text.gz --out run" + kSmall, "bits_per_byte");
}

TEST_F(OwnData, APipeWhoseRunGoesOnWithoutIt) {
  write("1.txt", lines(100));
  write("2.txt", lines(100, "of another"));
  const std::string head =
      trains_and_evaluates("cat *.txt | routing train --data - --out run" + kSmall, "bits_per_byte");
  EXPECT_TRUE(contains(head, "run/data/standard-input-")) << head;
  ASSERT_EQ(names_in("run/data").size(), 1U);
  EXPECT_EQ(text_of(folder_ / "run/data" / names_in("run/data")[0]),
            text_of(folder_ / "1.txt") + text_of(folder_ / "2.txt"));
  fs::remove(folder_ / "1.txt");
  EXPECT_EQ(type("routing train --out run --resume auto --steps 6 --quiet").exit_code, 0);
  // What the run keeps goes where the run goes.
  fs::rename(folder_ / "run", folder_ / "moved");
  EXPECT_GT(json_of("routing eval moved --quiet")["bits_per_byte"], 0.0);
  const Outcome resumed = type("routing train --out moved --resume auto --steps 8 --quiet");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  // Other bytes are not what was learned from.
  expect_error("cat 2.txt | routing train --out moved --resume auto --data - --steps 9 --quiet",
               {"its training part has", "give the same data"});
}

TEST_F(OwnData, APipeForRanksIsReadOnceByWhoStartsThem) {
  write("text", lines(200));
  const Outcome trained = type("cat text | " + bytes_ + "--data - --ranks 2 --quiet");
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_GT(json_of("routing eval run --quiet")["bits_per_byte"], 0.0);
  expect_error("cat text | RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=1 " + bytes_ + "--data -",
               {"only one of several ranks could read", "--ranks N"});
}

TEST_F(OwnData, PipesOfTheShellAreReadWhereverDataAreLookedAt) {
  write("text", lines(200));
  write("other", lines(30));
  ASSERT_EQ(type("gzip -k text && gzip -k other").exit_code, 0);
  trains_and_evaluates(bytes_ + "--data <(zcat text.gz)", "bits_per_byte");
  const auto bytes = static_cast<std::int64_t>(fs::file_size(folder_ / "other"));
  const Json scored = json_of("TMPDIR=$PWD cat other | TMPDIR=$PWD routing eval run --data - --quiet");
  EXPECT_EQ(scored["tokens"], bytes);
  EXPECT_EQ(scored["split"], "all");
  EXPECT_EQ(json_of("routing eval run --data <(cat other) --quiet")["tokens"], bytes);
  EXPECT_EQ(json_of("routing eval run --data - --quiet < other.gz")["tokens"], bytes) << "unpacked";
  EXPECT_EQ(json_of("cat text | routing data info - --quiet --split 100%/0%/0%")["parts"]["train"]["tokens"],
            fs::file_size(folder_ / "text"));
  EXPECT_EQ(json_of("cat text | routing data prepare - --tokens words --out p --quiet")["tokens"], "words");
  EXPECT_TRUE(fs::exists(folder_ / "p/train.shard"));
  for (const std::string& name : names_in(".")) EXPECT_FALSE(name.starts_with("routing-")) << name << " was left";
}

TEST_F(OwnData, PipesThatCannotBeReadAreRefused) {
  write("text", lines(200));
  expect_error("true | " + bytes_ + "--data -", {"standard input: ended without a byte"});
  EXPECT_FALSE(fs::exists(folder_ / "run/config.toml"));
  expect_error("cat text | " + bytes_ + "--data - --data /dev/stdin", {"standard input: is named twice"});
  expect_error("script -qec \"routing data info - 2>said\" /dev/null; cat said >&2; exit 1", {});
  EXPECT_TRUE(contains(text_of(folder_ / "said"), "standard input: is a terminal")) << text_of(folder_ / "said");
  ASSERT_EQ(type(bytes_ + "--data text --quiet").exit_code, 0);
  expect_error("cat text | " + bytes_ + "--data -", {"run: holds a run already", "--resume"});
  expect_error("cat text | routing analyze health run --data - --quiet --out h.png",
               {"is a pipe, which can be read only once", "write it to a file"});
}

TEST_F(OwnData, SeveralPathsAreOneTextThatARunRemembers) {
  write("b.train.txt", lines(100));
  write("more/a.train.txt", lines(50, "of another"));
  write("c.test.txt", lines(30));
  const std::string head = trains_and_evaluates(
      bytes_ + "--set data.tokens=bytes --data b.train.txt --data more --data 'c.*.txt'", "bits_per_byte");
  EXPECT_TRUE(contains(head, "valid is the last 2 % of train")) << head;
  EXPECT_TRUE(contains(text_of(folder_ / "run/config.toml"), "path = [\"" + (folder_ / "b.train.txt").string()));
  const auto test = static_cast<std::int64_t>(fs::file_size(folder_ / "c.test.txt"));
  EXPECT_EQ(json_of("routing eval run --quiet")["tokens"], test);
  EXPECT_EQ(type("routing train --out run --resume auto --steps 6 --quiet").exit_code, 0);
  EXPECT_EQ(json_of("routing eval run --data c.test.txt --data more/a.train.txt --split test --quiet")["tokens"], test);
  const Json info = json_of("routing data info b.train.txt c.test.txt --quiet");
  EXPECT_EQ(info["tokens"], "bytes") << "as one file would be";
  EXPECT_EQ(info["parts"]["test"]["tokens"], test);
  expect_error("routing eval run --data \"$NOT_SET\"", {"--data", "the path is empty"});
  write("enwik8", "<mediawiki>" + lines(10));
  expect_error("routing data info b.train.txt enwik8", {"enwik8: is enwik8, a data set of its own", "name it alone"});
}

TEST_F(OwnData, PathsInAFileOfConfigurationAreSeenFromThatFile) {
  write("project/text.txt", lines(200));
  write("project/mine.toml", "base = 'tiny-enwik8'\n[data]\npath = 'text.txt'\n");
  const Outcome shown = type("routing train --config project/mine.toml --dry-run");
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_TRUE(contains(shown.out, "path = \"" + (folder_ / "project/text.txt").string() + "\"")) << shown.out;
  write("text.txt", lines(20));
  EXPECT_TRUE(contains(type("routing train --config project/mine.toml --data text.txt --dry-run").out,
                       "path = \"" + (folder_ / "text.txt").string() + "\""));
  EXPECT_TRUE(contains(type("ROUTING_DATA_PATH=text.txt routing train --config project/mine.toml --dry-run").out,
                       "path = \"" + (folder_ / "text.txt").string() + "\""));
}

TEST_F(OwnData, ADryRunLooksWhetherTheDataAreThere) {
  const std::string dry = "routing train --preset tiny-enwik8 --dry-run ";
  const std::string missing = "routing: error: " + (folder_ / "gone").string() + ": is not there; check the name\n";
  const Outcome refused = type(dry + "--data gone");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_EQ(refused.out, "");
  EXPECT_EQ(refused.err, missing);
  EXPECT_EQ(type(bytes_ + "--data gone --quiet").err, missing) << "as a training says it";
  EXPECT_EQ(type(dry).exit_code, 0) << "no data are named";
  EXPECT_TRUE(contains(type("echo text | " + dry + "--data -").out, "path = \"-\""));
  EXPECT_EQ(type("routing train --preset tiny-copy --dry-run").exit_code, 0);
}

}  // namespace
}  // namespace routing::own_data_test
