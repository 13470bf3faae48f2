#include "routing/config/resolve.h"

#include "routing/config/keys.h"
#include "support/experiment_cases.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <unistd.h>

namespace routing::resolve_test {
namespace {

namespace fs = std::filesystem;

// A configuration file that is there for one test.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text)
      : folder_(fs::temp_directory_path() / ("routing_resolve_" + std::to_string(::getpid()))),
        path_(folder_ / "config.toml") {
    fs::create_directories(folder_);
    std::ofstream(path_) << text;
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { fs::remove_all(folder_); }
  const fs::path& path() const { return path_; }

 private:
  fs::path folder_;
  fs::path path_;
};

std::string refusal_of_sources(const ConfigSources& sources) {
  return refusal_of([&] { resolve(sources); });
}

TEST(Resolve, NothingGivesTheDefaults) {
  EXPECT_EQ(resolve({}), ExperimentConfig{});
}

TEST(Resolve, EachSourceWinsOverTheOnesBeforeIt) {
  const TemporaryFile file("[train]\nbatch_size = 21\naccumulation = 22\nlog_every = 23\n");
  ConfigSources sources{.preset = "tiny-enwik8"};
  EXPECT_EQ(resolve(sources).name, "tiny-enwik8");
  EXPECT_EQ(std::get<LocalPattern>(resolve(sources).patterns.local.pattern).window, 128) << "the default is another";
  EXPECT_EQ(resolve(sources).train.batch_size, 4);
  sources.file = file.path();
  EXPECT_EQ(resolve(sources).train.batch_size, 21);
  sources.environment = {{"ROUTING_TRAIN_ACCUMULATION", "32"}, {"ROUTING_TRAIN_LOG_EVERY", "33"}};
  sources.settings = {"train.log_every=43"};
  const ExperimentConfig config = resolve(sources);
  EXPECT_EQ(config.model.width, 256) << "preset";
  EXPECT_EQ(config.train.batch_size, 21) << "file over preset";
  EXPECT_EQ(config.train.accumulation, 32) << "environment over file";
  EXPECT_EQ(config.train.log_every, 43) << "settings over environment";
}

TEST(Resolve, TheRoutingPresetOfASourceKeepsToThatSource) {
  const TemporaryFile file("[routing]\npreset = \"code\"\ndecay = 0.5\nwindow = 64\n");
  const ExperimentConfig config =
      resolve({.file = file.path(), .settings = {"routing.dead_patience=3", "routing.preset=paper"}});
  EXPECT_EQ(config.routing.routing().commitment, 0.0) << "paper, of the settings, is later";
  EXPECT_EQ(config.routing.routing().decay, 0.999) << "it resets what the file said";
  EXPECT_EQ(config.routing.routing().window, 64) << "but not sizes";
  EXPECT_EQ(config.routing.routing().dead_patience, 3) << "and not what stands beside it";
}

TEST(Resolve, AFileMayStartFromAPresetOfItsOwn) {
  const TemporaryFile file("base = \"tiny-enwik8\"\nname = \"mine\"\n[train]\nsteps = 7\n");
  ExperimentConfig expected = resolve({.preset = "tiny-enwik8"});
  expected.name = "mine";
  expected.train.steps = 7;
  EXPECT_EQ(resolve({.file = file.path()}), expected);
  EXPECT_EQ(refusal_of_sources({.preset = "quickstart", .file = file.path()}),
            file.path().string() +
                ": base = \"tiny-enwik8\", but `preset` quickstart was given too; a run starts from one of them");
}

TEST(Resolve, RanksOfTheCodePresetFollowTheWindow) {
  const ExperimentConfig config = resolve({.settings = {"routing.preset=code", "routing.window=512"}});
  EXPECT_EQ(layer_rules(config).front().head_groups.back().max_relative, 512) << "never clipped";
}

TEST(Resolve, ValidatesTheResult) {
  EXPECT_EQ(refusal_of_sources({.settings = {"routing.window=4096"}}),
            "routing.window 4096 is longer than train.sequence_length 2048; lower routing.window or raise "
            "train.sequence_length");
  EXPECT_EQ(resolve({.settings = {"routing.window=4096", "train.sequence_length=4096"}}).train.sequence_length, 4096)
      << "only the whole has to fit";
}

TEST(Resolve, ErrorsNameTheirSource) {
  EXPECT_TRUE(refusal_of_sources({.preset = "tiny"}).starts_with("preset: 'tiny' is not known"));
  const TemporaryFile file("[train]\nsteps = 'x'\n");
  EXPECT_EQ(refusal_of_sources({.file = file.path()}),
            file.path().string() + ":2: train.steps must be a whole number, but the file gives it text");
  EXPECT_EQ(refusal_of_sources({.environment = {{"ROUTING_TRAIN_STEPS", "ten"}}}),
            "environment ROUTING_TRAIN_STEPS: train.steps: 'ten' is not a whole number");
  EXPECT_EQ(refusal_of_sources({.settings = {"train.steps=ten"}}),
            "`settings` train.steps=ten: train.steps: 'ten' is not a whole number");
}

TEST(Resolve, AFileThatCannotBeReadIsAFileError) {
  const auto refusal = [](const fs::path& path) { return refusal_of<FileError>([&] { resolve({.file = path}); }); };
  EXPECT_EQ(refusal("/no/such.toml"), "/no/such.toml: cannot be opened; name a TOML file that exists and may be read");
  const TemporaryFile file("");
  const std::string folder = file.path().parent_path();
  EXPECT_EQ(refusal(folder), folder + ": a folder, but a configuration is a TOML file; name the file");
}

TEST(Resolve, PathsInAFileAreSeenFromItsFolder) {
  const TemporaryFile file("base = 'tiny-enwik8'\n[data]\npath = 'text.txt'\nvocabulary = '../v'\ncache = '/c'\n");
  const fs::path folder = file.path().parent_path();
  const DataConfig data = resolve({.file = file.path()}).data;
  EXPECT_EQ(data.path, (folder / "text.txt").string());
  EXPECT_EQ(data.vocabulary, (folder / "../v").string());
  EXPECT_EQ(data.cache, "/c");
  EXPECT_EQ(resolve({.file = fs::relative(file.path())}).data.path, fs::absolute(fs::relative(folder)) / "text.txt");
  // Nowhere else.
  EXPECT_EQ(resolve({.file = file.path(), .settings = {"data.path=text.txt"}}).data.path, "text.txt");
  EXPECT_EQ(resolve({.file = file.path(), .environment = {{"ROUTING_DATA_CACHE", "c"}}}).data.cache, "c");
  const TemporaryFile none("[data]\npath = ''\n");
  EXPECT_EQ(resolve({.file = none.path()}).data.path, "");
}

TEST(Resolve, AFileMayNameSeveralTexts) {
  const TemporaryFile file("[data]\npath = ['a.txt', '/b', '-']\n");
  EXPECT_EQ(resolve({.file = file.path()}).data.path, (file.path().parent_path() / "a.txt").string() + "\n/b\n-");
}

TEST(SetOption, SplitsAtTheFirstEqualsSign) {
  EXPECT_EQ(resolve({.settings = {"name=a=b"}}).name, "a=b");
  EXPECT_EQ(resolve({.settings = {"data.path="}}).data.path, "");
  EXPECT_EQ(refusal_of_sources({.settings = {"train.steps"}}),
            "`settings` train.steps: there is no '='; write KEY=VALUE, such as train.steps=200");
  EXPECT_EQ(refusal_of_sources({.settings = {"train.stesp=5"}}),
            "`settings` train.stesp=5: unknown configuration key 'train.stesp'; did you mean 'train.steps'?");
}

TEST(Environment, EveryKeyHasItsOwnVariableThatSetsIt) {
  EXPECT_EQ(variable_of_key("train.steps"), "ROUTING_TRAIN_STEPS");
  EXPECT_EQ(variable_of_key("routing.max_memberships"), "ROUTING_ROUTING_MAX_MEMBERSHIPS");
  std::set<std::string> variables(reserved_variables().begin(), reserved_variables().end());
  ConfigSources sources;
  ExperimentConfig expected = unlike_defaults();
  expected.train.sequence_length = 2048;
  expected.attention.content = PatternKind::full;
  expected.model.image_height = 0;  // images have no source for the encoder
  expected.model.image_width = 0;
  expected.train.source_length = 2048;
  expected.memory.length = expected.memory.compressed = expected.eval.memory = 0;  // nor do encoders remember
  expected.data.key_first = false;                                                 // only recall has facts
  expected.train.sample_every = 0;                                                 // nor does it write alone
  expected.train.sequence_ranks = 1;                                               // nor are its sequences shared
  // Shifted keys have no position to be turned by.
  expected.patterns.local.rotary = expected.patterns.full.rotary = Rotary::none;
  for (const std::string& key : experiment_keys()) {
    EXPECT_TRUE(variables.insert(variable_of_key(key)).second) << variable_of_key(key) << " has two meanings";
    sources.environment.emplace_back(variable_of_key(key), get_key(expected, key));
  }
  EXPECT_EQ(resolve(sources), expected);
}

TEST(Environment, ReservedAndForeignVariablesAreNoKeys) {
  EXPECT_EQ(resolve({.environment = {{"ROUTING_ISA", "avx2"}, {"ROUTING_TEST_DATA", "/data"}, {"PATH", "/bin"}}}),
            ExperimentConfig{});
}

TEST(Environment, TheRoutingPresetHasAVariable) {
  EXPECT_TRUE(resolve({.environment = {{"ROUTING_ROUTING_PRESET", "code"}}}).routing.head_mix);
}

TEST(Environment, AnUnknownVariableNamesTheNearest) {
  EXPECT_EQ(refusal_of_sources({.environment = {{"ROUTING_TRAIN_STESP", "5"}}}),
            "environment: ROUTING_TRAIN_STESP is not the variable of a configuration key; did you mean "
            "'ROUTING_TRAIN_STEPS'? Otherwise unset it");
  EXPECT_EQ(refusal_of_sources({.environment = {{"ROUTING_WINDOW", "5"}}}),
            "environment: ROUTING_WINDOW is not the variable of a configuration key; did you mean "
            "'ROUTING_ROUTING_WINDOW'? Otherwise unset it");
}

TEST(Environment, IsReadFromTheProcess) {
  ::setenv("ROUTING_TRAIN_STEPS", "12=34", 1);
  ::setenv("OTHER_ROUTING_TRAIN_STEPS", "56", 1);
  bool found = false;
  for (const auto& [name, value] : routing_environment()) {
    EXPECT_TRUE(name.starts_with("ROUTING_")) << name;
    if (name == "ROUTING_TRAIN_STEPS") {
      EXPECT_EQ(value, "12=34");
      found = true;
    }
  }
  EXPECT_TRUE(found);
  ::unsetenv("ROUTING_TRAIN_STEPS");
  ::unsetenv("OTHER_ROUTING_TRAIN_STEPS");
  for (const auto& [name, value] : routing_environment()) EXPECT_NE(name, "ROUTING_TRAIN_STEPS");
}

}  // namespace
}  // namespace routing::resolve_test
