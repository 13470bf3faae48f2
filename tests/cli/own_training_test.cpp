// `routing train` for somebody who has files and no preset.
#include "cli/program_fixture.h"
#include "routing/core/files.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>

namespace routing::own_training_test {
namespace {

class CliOwnTraining : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    std::string text;
    for (int i = 0; i < 400; ++i) text += "line " + std::to_string(i * i % 97) + " of a text\n";
    std::ofstream(folder_ / "text") << text;
  }

  std::string config_of(const std::string& run) const { return read_file(folder_ / run / "config.toml"); }
  bool has_line(const std::string& text, const std::string& line) const {
    return contains("\n" + text, "\n" + line + "\n");
  }
};

TEST_F(CliOwnTraining, WithoutAPresetTheDataDecideAndTheRunsOwnFileRepeatsIt) {
  const Outcome first = run("train --data text --out first --steps 3 --layers 1");
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_TRUE(contains(first.err, "my-text is the preset for ")) << first.err;
  EXPECT_TRUE(has_line(config_of("first"), "name = \"my-text\"")) << config_of("first");
  ASSERT_EQ(run("train --quiet --config first/config.toml --out second").exit_code, 0);
  const std::string model = "checkpoints/step-00000003/model.safetensors";
  EXPECT_EQ(read_file(folder_ / "first" / model), read_file(folder_ / "second" / model));
  expect_refused("train --data text --out ranks --ranks 2", {"several ranks need to know the model"});
  EXPECT_FALSE(fs::exists(folder_ / "ranks"));
}

TEST_F(CliOwnTraining, ShortOptionsAreKeys) {
  const Outcome shown =
      run("train --data text --dry-run --steps 9 --layers 3 --width 64 --format text --tokens words --batch-size 3 "
          "--sequence-length 48 --learning-rate 0.25");
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  for (const char* const line :
       {"name = \"my-words\"", "layers = 3", "width = 64", "feedforward_width = 256", "format = \"text\"",
        "tokens = \"words\"", "batch_size = 3", "sequence_length = 48", "learning_rate = 0.25", "steps = 9"}) {
    EXPECT_TRUE(has_line(shown.out, line)) << line << "\n" << shown.out;
  }
  const Outcome wider = run("train --data text --dry-run --steps 9 --width 64 --set model.feedforward_width=100");
  EXPECT_TRUE(has_line(wider.out, "feedforward_width = 100")) << wider.out;
  expect_refused("train --data text --dry-run --layers many", {"model.layers", "many"});
}

TEST_F(CliOwnTraining, MinutesBecomeStepsWithAWarmUpThatFits) {
  const Outcome outcome = run("train --data text --out run --minutes 0.03 --layers 1 --width 16 --sequence-length 64");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "timing a few steps to see what fits into 0.03 minutes")) << outcome.err;
  const std::string config = config_of("run");
  const auto number = [&](const std::string& key) {
    const std::size_t at = ("\n" + config).find("\n" + key + " = ");
    return std::stoll(config.substr(at + key.size() + 3));
  };
  EXPECT_GE(number("steps"), 10);
  EXPECT_EQ(number("warmup_steps"), std::min<std::int64_t>(100, number("steps") / 5));
  EXPECT_EQ(number("decay_steps"), 0);
  // About ten samples, unless they take too long.
  EXPECT_GE(number("sample_every"), (number("steps") + 9) / 10);
  EXPECT_LE(number("sample_every"), number("steps"));
  EXPECT_EQ(number("clusters_every"), number("log_every"));
  // Their number is what counts if it is given.
  ASSERT_EQ(run("train --quiet --data text --out counted --minutes 5 --steps 2 --layers 1").exit_code, 0);
  EXPECT_TRUE(has_line(config_of("counted"), "steps = 2"));
  EXPECT_TRUE(has_line(config_of("counted"), "minutes = 5.0")) << config_of("counted");
}

TEST_F(CliOwnTraining, ResumeNeedsNoWordAndSaysSoWhenNothingIsLeft) {
  ASSERT_EQ(run("train --quiet --data text --out run --steps 2 --layers 1").exit_code, 0);
  const Outcome again = run("train --out run --resume");
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_TRUE(contains(again.out, "the run is at its last step already")) << again.out;
  EXPECT_TRUE(contains(again.out, "routing train --out run --resume --steps 4")) << again.out;
  EXPECT_FALSE(contains(again.out, "tokens/s")) << again.out;
  const Outcome longer = run("train --out run --resume --steps 4 --learning-rate 0.001");
  EXPECT_EQ(longer.exit_code, 0) << longer.err;
  EXPECT_TRUE(contains(longer.err, "train.learning_rate is 0.001 from step 2 on, 0.003 before")) << longer.err;
  EXPECT_TRUE(fs::exists(folder_ / "run/config-to-step-00000002.toml"));
}

}  // namespace
}  // namespace routing::own_training_test
