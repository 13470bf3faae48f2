#include "routing/config/toml.h"

#include "routing/config/keys.h"
#include "routing/config/text/path_list.h"
#include "routing/core/error.h"
#include "support/experiment_cases.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace routing::toml_test {
namespace {

std::string refusal_of_file(const std::string& text) {
  ExperimentConfig config = unlike_defaults();
  const std::string message = refusal_of([&] { apply_toml(config, text, "my.toml"); });
  if (message != "accepted") {
    EXPECT_EQ(config, unlike_defaults()) << "a refused file changes nothing: " << text;
  }
  return message;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// "train.steps" -> `steps = …` below [train].
std::vector<std::string> keys_in(const std::string& toml) {
  std::vector<std::string> keys;
  std::string section;
  for (const std::string& line : lines_of(toml)) {
    if (line.starts_with("[")) section = line.substr(1, line.size() - 2) + ".";
    if (const std::size_t equals = line.find(" = "); equals != std::string::npos) {
      keys.push_back(section + line.substr(0, equals));
    }
  }
  return keys;
}

TEST(ApplyToml, KeysThatAreGoneAreReadWhereNothingDependsOnThem) {
  ExperimentConfig config;
  apply_toml(config, "[routing]\nfallback = \"argmax\"\ncommit_to = \"argmax\"\nclusters = 9\n", "old.toml");
  EXPECT_EQ(config.routing.routing().clusters, 9);
  apply_toml(config, "[attention]\nconvolution = 0\n", "old.toml");
  EXPECT_EQ(refusal_of_file("[attention]\nconvolution = 3\n"),
            "my.toml:2: attention.convolution is gone and was 0 for all that is left, but the file gives it 3; "
            "CHANGELOG.md says why");
  EXPECT_EQ(refusal_of_file("[routing]\nfallback = \"margin\"\n"),
            "my.toml:2: routing.fallback is gone and was argmax for all that is left, but the file gives it margin; "
            "CHANGELOG.md says why");
  EXPECT_EQ(refusal_of_file("[routing]\ncommit_to = true\n"),
            "my.toml:2: routing.commit_to is gone and was argmax for all that is left, but the file gives it true or "
            "false; CHANGELOG.md says why");
}

TEST(ToToml, HasEveryKeyInOrder) {
  EXPECT_EQ(keys_in(to_toml(ExperimentConfig{})), experiment_keys());
}

TEST(ToToml, WritesEveryChangedValueInItsLine) {
  const std::vector<std::string> before = lines_of(to_toml(ExperimentConfig{}));
  const std::vector<std::string> after = lines_of(to_toml(unlike_defaults()));
  ASSERT_EQ(before.size(), after.size());
  for (std::size_t line = 0; line < before.size(); ++line) {
    const bool has_value = before[line].find(" = ") != std::string::npos;
    EXPECT_EQ(before[line] != after[line], has_value) << before[line];
  }
}

TEST(ToToml, WritesEachKindInItsNotation) {
  ExperimentConfig config;
  config.train.minutes = 3.0;
  const std::string text = "\n" + to_toml(config);
  for (const std::string line :
       {"name = \"unnamed\"", "[model]", "vocab_size = 256", "tied_output = false", "norm = \"pre\"", "minutes = 3.0",
        "learning_rate = 0.001", "epsilon = 1e-09", "scale = \"1/sqrt(head_dim)\"", "path = \"\"", "seed = 1"}) {
    EXPECT_NE(text.find("\n" + line + "\n"), std::string::npos) << line;
  }
}

TEST(ToToml, ComesBackExactlyOverAnyOtherConfiguration) {
  ExperimentConfig there;
  apply_toml(there, to_toml(unlike_defaults()), "there");
  EXPECT_EQ(there, unlike_defaults());
  ExperimentConfig back = unlike_defaults();
  apply_toml(back, to_toml(ExperimentConfig{}), "back");
  EXPECT_EQ(back, ExperimentConfig{});
}

TEST(ToToml, SeveralPathsAreAListAndOneIsText) {
  ExperimentConfig config;
  config.data.path = path_list({"/a b", "/\"c\""});
  EXPECT_NE(to_toml(config).find("\npath = [\"/a b\", \"/\\\"c\\\"\"]\n"), std::string::npos) << to_toml(config);
  ExperimentConfig read;
  apply_toml(read, to_toml(config), "list");
  EXPECT_EQ(read, config);
  apply_toml(read, "data.path = []\n", "list");
  EXPECT_EQ(read.data.path, "");
  EXPECT_EQ(refusal_of_file("[data]\npath = ['a', 1]\n"),
            "my.toml:2: data.path must be text in quotes or a list of such, but the file gives it a list");
  EXPECT_EQ(refusal_of_file("[data]\ncache = ['a']\n"),
            "my.toml:2: data.cache must be text in quotes, but the file gives it a list");
}

TEST(ToToml, KeepsEveryBitOfANumber) {
  for (const double value : {0.1, 1.0 / 3.0, 5e-324, 1e22, 123456789012345680.0, 1.7976931348623157e308,
                             std::nextafter(1.0, 2.0), 1e-7, 100000.0, -0.5}) {
    ExperimentConfig config;
    config.train.clip = value;
    config.patterns.local.scale = value;
    ExperimentConfig read;
    apply_toml(read, to_toml(config), "numbers");
    EXPECT_EQ(read.train.clip, value);
    EXPECT_EQ(read.patterns.local.scale, value);
  }
}

TEST(ApplyToml, ChangesWhatTheFileNamesAndNothingElse) {
  ExperimentConfig config = unlike_defaults();
  apply_toml(config,
             "name = 'plain'\n"
             "[train]\n"
             "steps = 5_000   # a comment\n"
             "minutes = 2\n"
             "learning_rate = 2e-4\n"
             "[local]\n"
             "scale = 1\n"
             "[model]\n"
             "tied_output = false\n",
             "my.toml");
  ExperimentConfig expected = unlike_defaults();
  expected.name = "plain";
  expected.train.steps = 5000;
  expected.train.minutes = 2.0;
  expected.train.learning_rate = 2e-4;
  expected.patterns.local.scale = 1.0;
  expected.model.tied_output = false;
  EXPECT_EQ(config, expected);
}

TEST(ApplyToml, ReadsDottedKeysAndEmptyFiles) {
  ExperimentConfig config;
  apply_toml(config, "train.steps = 9\n", "my.toml");
  EXPECT_EQ(config.train.steps, 9);
  const ExperimentConfig before = config;
  apply_toml(config, "", "empty.toml");
  apply_toml(config, "[train]\n", "section.toml");
  EXPECT_EQ(config, before);
}

TEST(ApplyToml, TakesTheRoutingPresetFirst) {
  ExperimentConfig config;
  apply_toml(config, "[routing]\ndecay = 0.5\npreset = \"paper\"\n", "my.toml");
  EXPECT_EQ(config.routing.routing().decay, 0.5);
  EXPECT_EQ(config.routing.routing().selection, RoutingSelection::balanced);
  EXPECT_EQ(refusal_of_file("[routing]\npreset = 1\n"),
            "my.toml:2: routing.preset must be text in quotes, but the file gives it a whole number");
}

// a <- b <- c, and x <-> y.
std::string small_preset(std::string_view name) {
  static const std::map<std::string, std::string, std::less<>> texts{
      {"a", "name = 'a'\n[train]\nsteps = 1\nbatch_size = 2\nlog_every = 3\n"},
      {"b", "base = 'a'\nname = 'b'\n[train]\nbatch_size = 20\n[routing]\npreset = 'paper'\n"},
      {"x", "base = 'y'\n"},
      {"y", "base = 'x'\n"},
      {"wrong", "base = 'a'\n[train]\nstesp = 1\n"}};
  const auto found = texts.find(name);
  require<ConfigError>(found != texts.end(), "no preset ", name);
  return found->second;
}

std::string refusal_of_chain(const std::string& text) {
  ExperimentConfig config = unlike_defaults();
  const std::string message = refusal_of([&] { apply_toml(config, text, "my.toml", {.presets = small_preset}); });
  EXPECT_EQ(config, unlike_defaults()) << "a refused file changes nothing: " << text;
  return message;
}

TEST(ApplyToml, ABaseGivesEverythingTheFileDoesNotName) {
  ExperimentConfig config = unlike_defaults();
  apply_toml(config, "base = 'b'\nname = 'c'\n[train]\nlog_every = 300\n[routing]\ndecay = 0.5\n", "my.toml",
             {.presets = small_preset});
  ExperimentConfig expected;
  set_key(expected, "routing.preset", "paper");
  expected.routing.routing().decay = 0.5;
  expected.name = "c";
  expected.train.steps = 1;
  expected.train.batch_size = 20;
  expected.train.log_every = 300;
  EXPECT_EQ(config, expected) << "and what no base names is as the defaults have it";
}

TEST(ApplyToml, ARoutingPresetOfTheFileResetsWhatTheBaseSaid) {
  ExperimentConfig config;
  apply_toml(config, "base = 'b'\n[routing]\npreset = 'ours'\n", "my.toml", {.presets = small_preset});
  EXPECT_EQ(config.routing.routing().selection, RoutingSelection::threshold);
  EXPECT_EQ(config.train.batch_size, 20);
}

TEST(ApplyToml, BasesInACircleAreNamed) {
  EXPECT_EQ(refusal_of_chain("base = 'x'\n"),
            "preset y:1: base = \"x\" leads back to itself (x -> y -> x); one of them must start from nothing");
}

TEST(ApplyToml, AWrongBaseIsRefusedWithItsLine) {
  EXPECT_EQ(refusal_of_chain("\nbase = 'z'\n"), "my.toml:2: base: no preset z");
  EXPECT_EQ(refusal_of_chain("base = 3\n"),
            "my.toml:1: base must be text in quotes, the name of a preset, but is a whole number");
  EXPECT_EQ(refusal_of_chain("base = 'wrong'\n"),
            "preset wrong:3: unknown configuration key 'train.stesp'; did you mean 'train.steps'?");
  EXPECT_EQ(refusal_of_file("[train]\nbase = 'a'\n").substr(0, 46), "my.toml:2: unknown configuration key 'train.ba");
}

TEST(BaseOfToml, IsWhatTheFileNames) {
  EXPECT_EQ(base_of_toml("base = 'tiny-enwik8'\n[train]\nsteps = 1\n", "my.toml"), "tiny-enwik8");
  EXPECT_EQ(base_of_toml("[train]\nsteps = 1\n", "my.toml"), "");
}

TEST(ApplyToml, AnUnknownKeyIsRefusedWithItsLineAndTheNearest) {
  EXPECT_EQ(refusal_of_file("[train]\nsteps = 1\nstesp = 2\n"),
            "my.toml:3: unknown configuration key 'train.stesp'; did you mean 'train.steps'?");
  EXPECT_EQ(refusal_of_file("\nsteps = 1\n"),
            "my.toml:2: unknown configuration key 'steps'; did you mean 'train.steps'?");
  EXPECT_EQ(refusal_of_file("[train]\nstesp = [1, 2]\n"),
            "my.toml:2: unknown configuration key 'train.stesp'; did you mean 'train.steps'?");
}

TEST(ApplyToml, AnUnknownSectionIsRefusedWithItsLineAndTheNearest) {
  EXPECT_EQ(refusal_of_file("name = 'x'\n\n[trian]\nsteps = 1\n"),
            "my.toml:3: unknown section [trian]; did you mean 'train'?");
  EXPECT_EQ(refusal_of_file("[train.steps.more]\nx = 1\n"),
            "my.toml:1: train.steps must be a whole number, but the file gives it a section");
  EXPECT_EQ(refusal_of_file("train = 3\n"),
            "my.toml:1: train is a section, but the file gives it a whole number; write [train] and its keys below");
}

TEST(ApplyToml, AWrongTypeIsRefusedWithItsLine) {
  const auto refusal = [](const std::string& key, const std::string& value) {
    return refusal_of_file("[train]\n" + key + " = " + value + "\n");
  };
  const std::string steps = "my.toml:2: train.steps must be a whole number, but the file gives it ";
  EXPECT_EQ(refusal("steps", "\"ten\""), steps + "text");
  EXPECT_EQ(refusal("steps", "10.0"), steps + "a number with a fraction");
  EXPECT_EQ(refusal("steps", "true"), steps + "true or false");
  EXPECT_EQ(refusal("steps", "[10]"), steps + "a list");
  EXPECT_EQ(refusal("steps", "2026-01-01"), steps + "a date or time");
  EXPECT_EQ(refusal("clip", "\"1.0\""), "my.toml:2: train.clip must be a number, but the file gives it text");
  EXPECT_EQ(refusal("order", "1"),
            "my.toml:2: train.order must be text in quotes, but the file gives it a whole number");
  EXPECT_EQ(refusal_of_file("[model]\ntied_output = 1\n"),
            "my.toml:2: model.tied_output must be true or false, but the file gives it a whole number");
  EXPECT_EQ(refusal_of_file("[local]\nscale = true\n"),
            "my.toml:2: local.scale must be a number or \"1/sqrt(head_dim)\", but the file gives it true or false");
}

TEST(ApplyToml, AWrongValueIsRefusedWithItsLine) {
  EXPECT_EQ(refusal_of_file("[train]\norder = \"crop\"\n"),
            "my.toml:2: train.order: 'crop' is not known; choose one of crops, contiguous (did you mean 'crops'?)");
  EXPECT_EQ(refusal_of_file("[train]\nclip = inf\n"), "my.toml:2: train.clip: 'inf' is not a number");
  EXPECT_EQ(refusal_of_file("[train]\nseed = -1\n"), "my.toml:2: train.seed: '-1' is below 0");
}

TEST(ApplyToml, WrongSyntaxIsRefusedWithItsLine) {
  for (const std::string text :
       {"[train]\nsteps = \n", "[train]\nsteps = 1\nsteps = 2\n", "name = \"open\n", "[train\n"}) {
    const std::string message = refusal_of_file(text);
    EXPECT_TRUE(message.starts_with("my.toml:")) << message;
    EXPECT_NE(message.find(": not TOML: "), std::string::npos) << message;
  }
  EXPECT_TRUE(refusal_of_file("[train]\nsteps = 1\nsteps = 2\n").starts_with("my.toml:3: "));
}

// A model file carries its configuration: a stranger's must not end the process.
TEST(ApplyToml, KeysThatNestWithoutEndAreRefusedWithTheirLine) {
  std::string key = "a";
  for (int part = 0; part < 200'000; ++part) key += ".a";
  EXPECT_EQ(refusal_of_file("\n[" + key + "]\n"),
            "my.toml:2: a key has more than 64 parts; no configuration has such keys");
  EXPECT_EQ(refusal_of_file(key + " = 1\n"), "my.toml:1: a key has more than 64 parts; no configuration has such keys");
}

TEST(ApplyToml, LettersOutsideOfQuotesAreRefusedWithTheirLine) {
  const std::string reason =
      "a letter that is not ASCII stands outside of quotes and comments, or in quotes behind a backslash; write it in "
      "quotes, with a text that goes on behind a backslash on one line";
  EXPECT_EQ(refusal_of_file("name = \"caf\xc3\xa9\" # \xc3\xa9\n\xd2\x88 = 1\n"), "my.toml:2: " + reason);
  // That is TOML, but toml++ 3.3 cannot be asked.
  EXPECT_EQ(refusal_of_file("name = \"\"\"one \\\n  \xc3\xa4ther\"\"\"\n"), "my.toml:2: " + reason);
}

}  // namespace
}  // namespace routing::toml_test
