// What the Tab key of a shell offers: the answers of `routing complete`, and what bash makes of them.
#include "cli/program_fixture.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace routing::completion_test {
namespace {

using Words = std::vector<std::string>;

class Completion : public Cli {
 protected:
  // The words of the answer without their descriptions, and at the end what the shell adds: none, files or folders.
  Words offered(const std::string& line, const std::string& before = "") const {
    const Outcome outcome = run("complete " + line, before);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    Words words;
    std::istringstream lines(outcome.out);
    for (std::string each; std::getline(lines, each);) words.push_back(each.substr(0, each.find('\t')));
    EXPECT_TRUE(!words.empty() && words.back().starts_with(":")) << outcome.out;
    return words;
  }
  bool offers(const std::string& line, const std::string& word) const {
    const Words words = offered(line);
    return std::find(words.begin(), words.end(), word) != words.end();
  }

  void make_file(const fs::path& path) const {
    fs::create_directories((folder_ / path).parent_path());
    std::ofstream file(folder_ / path);
  }
  void make_run(const fs::path& run) const {
    make_file(run / "config.toml");
    make_file(run / "metrics.jsonl");
  }

  // What stands on the line after these keys were typed into an interactive bash.
  std::string typed_in_bash(const std::string& keys) const {
    make_file("bin/.keep");
    if (!fs::exists(folder_ / "bin/routing")) fs::create_symlink(ROUTING_PROGRAM, folder_ / "bin/routing");
    // Then Ctrl-A, to the beginning of the line, and what prints it.
    std::ofstream(folder_ / "keys") << "source <(routing completion bash)\n"
                                    << keys << "\x01printf '<%s>' \x05\nexit\n";
    const std::string command = "cd '" + folder_.string() +
                                "' && PATH=\"$PWD/bin:$PATH\" HOME=\"$PWD\" INPUTRC=/dev/null PS1= TERM=dumb "
                                "timeout 60 script -qc 'bash --norc --noprofile -i' /dev/null < keys > screen 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0);
    const std::string screen = text_of(folder_ / "screen");
    // Only what printf writes begins a line with <.
    const std::size_t start = screen.find("\n<");
    if (start == std::string::npos) return screen;
    const std::string line = screen.substr(start + 1, screen.find_first_of("\r\n", start + 1) - start - 1);
    return line.substr(0, line.rfind('>') + 1);  // without the next prompt
  }
};

TEST_F(Completion, OffersCommandsAndWhatIsBelowThem) {
  const Words commands = offered("''");
  for (const char* const word : {"train", "eval", "analyze", "completion"}) {
    EXPECT_NE(std::find(commands.begin(), commands.end(), word), commands.end()) << word;
  }
  EXPECT_EQ(offered("qui"), (Words{"quickstart", ":none"}));
  EXPECT_EQ(offered("analyze cu"), (Words{"curves", ":none"}));
  EXPECT_EQ(offered("--threads 2 --quiet analyze cu"), (Words{"curves", ":none"}));
  EXPECT_EQ(offered("nosuch"), (Words{":none"}));
  EXPECT_TRUE(contains(run("complete analyze cu").out, "curves\tLosses of runs over steps"));
}

TEST_F(Completion, OffersEveryOptionOfTheHelpAndNoneTwice) {
  const std::string help = run("train --help").out;
  const Words words = offered("train -");
  std::size_t options = 0;
  for (std::size_t at = help.find("\n  -"); at != std::string::npos; at = help.find("\n  -", at + 1)) ++options;
  EXPECT_GT(options, 25U);
  EXPECT_EQ(words.size(), options + 2) << "-h and --help are on one line, and the last word is for paths";
  EXPECT_TRUE(offers("train --", "--resume"));
  EXPECT_FALSE(offers("train --out x --", "--out")) << "given already";
  EXPECT_FALSE(offers("train --out=x --", "--out"));
  EXPECT_TRUE(offers("train --set a=b --", "--set")) << "may be repeated";
  EXPECT_TRUE(offers("train ''", "--resume")) << "there is nothing else to type";
  EXPECT_FALSE(offers("train --", "--version")) << "of the program only";
  EXPECT_TRUE(offers("--v", "--version"));
}

TEST_F(Completion, OffersTheWordsOfOptions) {
  EXPECT_EQ(offered("eval --split ''"), (Words{"train", "valid", "test", "all", ":none"}));
  EXPECT_EQ(offered("eval --split=t"), (Words{"--split=train", "--split=test", ":none"}));
  EXPECT_EQ(offered("train --precision b"), (Words{"bf16", ":none"}));
  EXPECT_EQ(offered("train --tokens s"), (Words{"subwords", "subpixels", ":none"}));
  EXPECT_EQ(offered("generate RUN --checkpoint ''"), (Words{"best", "last", ":none"}));
  EXPECT_EQ(offered("bench attention --pattern local,ran"), (Words{"local,random", ":none"})) << "of a list the last";
  EXPECT_EQ(offered("train --steps ''"), (Words{":none"})) << "a number";
  EXPECT_EQ(offered("train --resume a"), (Words{"auto", ":none"}));
  EXPECT_TRUE(offers("train --resume --o", "--out")) << "its value may be left out";
  EXPECT_EQ(offered("completion ''"), (Words{"bash", "zsh", "fish", ":none"}));
}

TEST_F(Completion, WordsOfTablesAndPatternsAreThoseOfTheEngine) {
  Words tables{};
  for (const auto& table : nlohmann::json::parse(run("table --list --json").out)) tables.push_back(table["table"]);
  tables.emplace_back(":none");
  EXPECT_EQ(offered("table ''"), tables);
  const Outcome refused = run("bench attention --pattern nosuch");
  Words patterns = offered("bench scaling --pattern ''");
  patterns.pop_back();
  std::string list;
  for (const std::string& pattern : patterns) list += (list.empty() ? "" : ", ") + pattern;
  EXPECT_TRUE(contains(refused.err, "choose one of " + list)) << refused.err;
}

TEST_F(Completion, OffersPresetsWithWhatTheyAre) {
  EXPECT_EQ(offered("train --preset cifar10-ran"), (Words{"cifar10-random", ":none"}));
  EXPECT_EQ(offered("presets --show cifar10-ran"), (Words{"cifar10-random", ":none"}));
  EXPECT_EQ(offered("info --preset nosuch"), (Words{":none"}));
  const auto presets = nlohmann::json::parse(run("presets --json").out);
  const Outcome all = run("complete train --preset ''");
  for (const auto& preset : presets) {
    const std::string line = preset["name"].get<std::string>() + "\t" + preset["summary"].get<std::string>() + "\n";
    EXPECT_TRUE(contains(all.out, line)) << line;
  }
}

TEST_F(Completion, OffersKeysAndTheirValues) {
  EXPECT_EQ(offered("train --set tr"), (Words{"train.", ":none"})) << "sections first";
  EXPECT_EQ(offered("train --set train.st"), (Words{"train.steps=", ":none"}));
  EXPECT_EQ(offered("train --set=train.st"), (Words{"--set=train.steps=", ":none"}));
  EXPECT_EQ(offered("train --set model.norm="), (Words{"model.norm=post", "model.norm=pre", ":none"}));
  EXPECT_EQ(offered("train --set attention.cross_content=l"),
            (Words{"attention.cross_content=local", "attention.cross_content=lsh", ":none"}))
      << "those of this key, not all patterns";
  EXPECT_EQ(offered("train --set eval.split=v"), (Words{"eval.split=valid", ":none"}));
  EXPECT_EQ(offered("train --set model.tied_output="),
            (Words{"model.tied_output=true", "model.tied_output=false", ":none"}));
  EXPECT_EQ(offered("train --set routing.preset=o"), (Words{"routing.preset=ours", ":none"}));
  EXPECT_EQ(offered("train --set train.steps="), (Words{":none"}));
  EXPECT_EQ(offered("train --set data.split="), (Words{":none"})) << "free text";
  EXPECT_EQ(offered("train --set data.path=x"), (Words{":files"}));
  EXPECT_EQ(offered("train --set no.such="), (Words{":none"}));
}

// A new enumeration has to be added to shell/key_values.cpp: else its keys would have no words.
TEST_F(Completion, OffersForEveryKeyTheWordsThatItsErrorNames) {
  std::istringstream lines(run("train --preset tiny-recall --out x --dry-run").out);
  std::string section;
  int with_words = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("[")) section = line.substr(1, line.find(']') - 1) + ".";
    if (!contains(line, " = \"")) continue;
    const std::string key = section + line.substr(0, line.find(' '));
    const std::string error = run("info --preset tiny-recall --set '" + key + "=no such word'").err;
    const std::string before = "choose one of ";
    const std::size_t start = error.find(before);
    if (start == std::string::npos) continue;  // free text, or a grammar of its own
    ++with_words;
    std::istringstream names(error.substr(start + before.size()));
    std::set<std::string> wanted{":none"};
    for (std::string name; names >> name;) wanted.insert(key + "=" + name.substr(0, name.find(',')));
    const Words words = offered("train --set " + key + "=");
    EXPECT_EQ(std::set<std::string>(words.begin(), words.end()), wanted) << key;
  }
  EXPECT_GT(with_words, 15);
}

TEST_F(Completion, OffersRunsAndTheWayToThem) {
  make_run("runs/first");
  make_run("runs/second run");
  make_file("runs/first/checkpoints/step-00000100/model.safetensors");
  make_file("texts/one.txt");
  make_file("site/config.toml");
  make_file("deep/a/b/export/model.safetensors");
  EXPECT_EQ(offered("eval ''"), (Words{"deep/", "runs/", ":none"})) << "not a folder with some config.toml";
  EXPECT_EQ(offered("eval runs/"), (Words{"runs/first", "runs/second run", ":none"}));
  EXPECT_EQ(offered("eval ./runs/f"), (Words{"./runs/first", ":none"}));
  EXPECT_EQ(offered("eval runs/first/"), (Words{"runs/first/checkpoints/", ":none"}));
  EXPECT_EQ(offered("eval runs/first/checkpoints/"), (Words{"runs/first/checkpoints/step-00000100", ":none"}));
  EXPECT_EQ(offered("eval deep/a/b/export/m"), (Words{"deep/a/b/export/model.safetensors", ":none"}));
  EXPECT_EQ(offered("eval \\~/runs/f", "HOME=$PWD"), (Words{"~/runs/first", ":none"}));
  EXPECT_EQ(offered("eval tex"), (Words{":folders"})) << "no run, but perhaps the way to one";
  EXPECT_EQ(offered("eval runs/first --against runs/s"), (Words{"runs/second run", ":none"}));
  EXPECT_EQ(offered("analyze curves runs/first runs/s"), (Words{"runs/second run", ":none"})) << "several";
  EXPECT_TRUE(offers("eval runs/first ''", "--split")) << "one only";
  EXPECT_EQ(offered("generate runs/first ''"), (Words{"-", ":none"})) << "the second argument";
}

TEST_F(Completion, LeavesPathsToTheShell) {
  EXPECT_EQ(offered("train --data te"), (Words{":files"}));
  EXPECT_EQ(offered("train --data=te"), (Words{":files"}));
  EXPECT_EQ(offered("train --config ''"), (Words{":files"}));
  EXPECT_EQ(offered("train --out ''"), (Words{":folders"}));
  EXPECT_EQ(offered("runs ''"), (Words{":folders"}));
  EXPECT_EQ(offered("data info ''"), (Words{":files"}));
}

TEST_F(Completion, SurvivesAnyLine) {
  for (const char* const line : {"", "-", "--", "---", "--=", "=", "--set", "--set --set", "-- --set",
                                 "train -n5 --x=y --nosuch v -", "'a\nb' 'c\td' ''", "complete complete", "eval '~'",
                                 "eval /nosuch/x", "train --set =", "train --set .", "eval -- -"}) {
    EXPECT_TRUE(offered(line).back().starts_with(":")) << line;
  }
}

TEST_F(Completion, CompletesInBash) {
  if (std::system("command -v script bash > /dev/null") != 0) GTEST_SKIP() << "script or bash is not installed";
  make_run("runs/first");
  make_run("runs/my second");
  make_file("texts/one text.txt");
  EXPECT_EQ(typed_in_bash("routing anal\tcu\truns/f\t"), "<routing><analyze><curves><runs/first>");
  EXPECT_EQ(typed_in_bash("routing eval runs/m\t--split va\t"), "<routing><eval><runs/my second><--split><valid>");
  EXPECT_EQ(typed_in_bash("routing train --set tra\tstep\t7 --set=data.form\tcif\t"),
            "<routing><train><--set><train.steps=7><--set=data.format=cifar10>");
  EXPECT_EQ(typed_in_bash("routing train --data te\to\t--data=te\to\t--out te\t"),
            "<routing><train><--data><texts/one text.txt><--data=texts/one text.txt><--out><texts/>");
  EXPECT_EQ(typed_in_bash("bin/routing eval 'runs/m\t--split=va\t"),
            "<bin/routing><eval><runs/my second><--split=valid>");
}

TEST_F(Completion, ScriptsAreThoseOfTheSources) {
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    const fs::path file = fs::path(ROUTING_SOURCE_DIR) / "apps/routing/help/shells" / (shell + "." + shell);
    EXPECT_EQ(run("completion " + shell).out, text_of(file));
  }
  expect_refused("completion tcsh", {"tcsh", "bash"});
  expect_refused("completion", {"SHELL is missing"});
}

}  // namespace
}  // namespace routing::completion_test
