// routing generate with models of bytes: prompts, streams, samples, and every mistake with its one line.
#include "cli/generate_fixture.h"
#include "test_paths.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <string>
#include <vector>

namespace routing::generate_test {
namespace {

TEST_F(CliGenerate, ContinuesAPromptWhereverItComesFromToItsEndOrAStopText) {
  train_on_bytes(120);
  const Outcome outcome = run("generate run --prompt 'line 4' -n 30");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.size() == 30 || (outcome.out.size() == 31 && outcome.out.back() == '\n')) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, " of a text\nline ")) << outcome.out;
  for (const char* part :
       {"30 tokens in ", " tokens/s", "first token after ", "prompt of 6 tokens: ", ", cached, causal"}) {
    EXPECT_TRUE(contains(outcome.err, part)) << part << " in " << outcome.err;
  }
  EXPECT_FALSE(contains(outcome.err, "note:")) << outcome.err;
  write("prompt", "line 4");
  EXPECT_EQ(generated("--prompt-file prompt -n 30"), outcome.out);
  EXPECT_EQ(generated("- -n 30", R"(sh -c 'echo "line 4" | "$0" "$@"')"), outcome.out)
      << "echo's line end is not part of the prompt";
  EXPECT_EQ(generated("--prompt-ids 108,105,110,101,32,52 -n 30"), outcome.out);
  EXPECT_EQ(generated("--prompt 'line 4' -n 30 --echo"), "line 4" + outcome.out);
  EXPECT_EQ(generated("--prompt 'line 4' -n 30 --no-cache"), outcome.out);

  // A stop text.
  const std::size_t cut = outcome.out.find("of a");
  ASSERT_NE(cut, std::string::npos) << outcome.out;
  const auto stopped = objects("--prompt 'line 4' -n 30 --prefill-block 1 --stop 'of a' --stop nowhere").front();
  EXPECT_EQ(stopped["stop_reason"], "stop text");
  EXPECT_EQ(stopped["text"], outcome.out.substr(0, cut));
  EXPECT_EQ(stopped["new_tokens"], cut + 4);
  const auto line = objects(R"(--prompt 'line 4' -n 30 --stop '\n')").front();
  EXPECT_EQ(line["text"], outcome.out.substr(0, outcome.out.find('\n')));
}

TEST_F(CliGenerate, TheSameSeedGivesTheSameBytesWhateverTheBatchAndTheThreads) {
  train_on_bytes(40);
  const std::string options = "-n 40 --num-samples 4 --top-p 1";
  const std::string first = generated(options + " --batch-size 4 --threads 1");
  EXPECT_EQ(generated(options + " --batch-size 4 --threads 1"), first);
  EXPECT_EQ(generated(options + " --batch-size 1 --threads 2"), first);
  EXPECT_NE(generated(options + " --seed 2"), first);
  const std::string greedy = generated("-n 40 --temperature 0");
  EXPECT_EQ(generated("-n 40 --top-k 1 --top-p 1 --seed 5"), greedy);
  EXPECT_EQ(generated("-n 40 --beams 1"), greedy);
  const std::string single = generated("-n 40 --top-p 1");
  EXPECT_EQ(first.rfind("=== sample 1 of 4 ===\n" + single, 0), 0U) << first;
  for (const char* header : {"=== sample 2 of 4 ===\n", "=== sample 4 of 4 ===\n"}) EXPECT_EQ(times(first, header), 1U);
}

TEST_F(CliGenerate, JsonAndLogProbabilitiesTellTheSameStory) {
  train_on_bytes(40);
  const std::string options = "--prompt 'line ' -n 12 --num-samples 2 --seed 3 --repetition-penalty 1.5";
  const auto samples = objects(options + " --logprobs 2");
  ASSERT_EQ(samples.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& sample = samples[i];
    EXPECT_EQ(sample["sample"], i);
    EXPECT_EQ(sample["prompt_tokens"], 5);
    EXPECT_EQ(sample["new_tokens"], 12);
    EXPECT_EQ(sample["stop_reason"], "length");
    EXPECT_EQ(sample["seed"], 3);
    EXPECT_EQ(sample["sampling"]["repetition_penalty"], 1.5);
    EXPECT_EQ(sample["label"], "cached");
    EXPECT_EQ(sample["validity"], "causal");
    EXPECT_TRUE(contains(sample["model"], "model.safetensors"));
    EXPECT_GT(sample["tokens_per_second"], 0.0);
    EXPECT_GT(sample["seconds_to_first_token"], 0.0);
    std::string text;
    for (const int id : sample["tokens"]) text += static_cast<char>(id);
    EXPECT_EQ(sample["text"], text);
    for (std::size_t token = 0; token < 12; ++token) {
      const double log_probability = sample["logprobs"][token];
      const auto& alternatives = sample["alternatives"][token];
      ASSERT_EQ(alternatives.size(), 2U);
      EXPECT_LE(log_probability, alternatives[0][1]);
      EXPECT_GE(alternatives[0][1], alternatives[1][1]);
      EXPECT_EQ(log_probability == alternatives[0][1], alternatives[0][0] == sample["tokens"][token]);
      EXPECT_LE(std::exp(alternatives[0][1].get<double>()) + std::exp(alternatives[1][1].get<double>()), 1.0 + 1e-9);
    }
  }
  EXPECT_NE(samples[0]["tokens"], samples[1]["tokens"]);
  std::istringstream lines(generated("--prompt 'line ' -n 12 --seed 3 --repetition-penalty 1.5 --logprobs"));
  for (std::size_t token = 0; token < 12; ++token) {
    int id = 0;
    double log_probability = 0.0;
    std::string text;
    lines >> id >> log_probability >> std::ws;
    ASSERT_TRUE(std::getline(lines, text));
    EXPECT_EQ(samples[0]["tokens"][token], id);
    EXPECT_NEAR(samples[0]["logprobs"][token], log_probability, 1e-6);
    EXPECT_EQ(nlohmann::json::parse(text), std::string(1, static_cast<char>(id)));
  }
}

TEST_F(CliGenerate, BytesThatAreNoTextBreakNothingAndThoseBeyondTheTrainingLengthComeWithOneNote) {
  train_on_bytes(1);  // as good as untrained: any byte may come
  const auto sample = objects("-n 64 --top-p 1").front();
  EXPECT_EQ(sample["tokens"].size(), 64U);
  EXPECT_TRUE(contains(sample["text"], "\xef\xbf\xbd")) << "some byte was no UTF-8";
  std::string bytes;
  for (const int id : sample["tokens"]) bytes += static_cast<char>(id);
  const Outcome past = run("generate run -n 64 --top-p 1");
  EXPECT_EQ(past.out.substr(0, 64), bytes);
  const std::string note = "note: token 49 is past train.sequence_length 48; windows go on, quality beyond is untested";
  EXPECT_EQ(times(past.err, note), 1U) << past.err;
  EXPECT_EQ(times(past.err, "note:"), 1U) << past.err;
  EXPECT_FALSE(contains(run("generate run --prompt 12345678 -n 40").err, "note:"));
}

TEST_F(CliGenerate, BalancedRoutingAndRandomHeadsRunPrefixesAgainAndSaySo) {
  train_on_bytes(2, "--set routing.selection=balanced");
  const Outcome outcome = run("generate run -n 4 --json");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* part : {"note: re-runs the prefix", "routing.selection = threshold", "selection reads the future"}) {
    EXPECT_TRUE(contains(outcome.err, part)) << part << " in " << outcome.err;
  }
  const auto sample = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(sample["label"], "re-runs the prefix");
  EXPECT_EQ(sample["validity"], "selection reads the future");
  fs::remove_all(folder_ / "run");
  train_on_bytes(2, "--set attention.content=random --set random.window=16");
  const Outcome random = run("generate run -n 4");
  EXPECT_EQ(random.exit_code, 0) << random.err;
  for (const char* part :
       {"note: re-runs the prefix", "random heads", "decodes with a cache", "re-runs the prefix, causal"}) {
    EXPECT_TRUE(contains(random.err, part)) << part << " in " << random.err;
  }
}

TEST_F(CliGenerate, AClosedPipeEndsItQuietlyAndAnInterruptLeavesWhatIsThere) {
  train_on_bytes(2);
  const std::string program =
      "cd '" + folder_.string() + "' && { '" + ROUTING_PROGRAM + "' generate run -n 1000000000 ";
  const auto status_of = [&](const std::string& command) {
    const int status = std::system(("bash -c \"" + command + "\"").c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  };
  EXPECT_EQ(status_of(program + "2> err | head -c 100 > out; exit \\${PIPESTATUS[0]}; }"), 128 + SIGPIPE);
  EXPECT_EQ(fs::file_size(folder_ / "out"), 100U);
  EXPECT_EQ(text_of(folder_ / "err"), "");
  EXPECT_EQ(status_of("trap '' PIPE; " + program + "2> err | head -c 100 > out; exit \\${PIPESTATUS[0]}; }"),
            128 + SIGPIPE);
  EXPECT_EQ(text_of(folder_ / "err"), "");
  fs::remove(folder_ / "out");
  EXPECT_EQ(status_of(program +
                      "> out 2> err & p=\\$!; while [ ! -s out ] && kill -0 \\$p; do sleep 0.01; done; kill -INT \\$p; "
                      "wait \\$p; }"),
            130);
  EXPECT_GT(fs::file_size(folder_ / "out"), 0U);
  EXPECT_EQ(text_of(folder_ / "out").back(), '\n');
  EXPECT_TRUE(contains(text_of(folder_ / "err"), " tokens in ")) << text_of(folder_ / "err");
}

TEST_F(CliGenerate, EveryMistakeHasOneLine) {
  train_on_bytes(2, "--set attention.content=full");
  expect_mistake(2, "run --prompt ''", {"empty", "leave it out to begin from nothing"});
  expect_mistake(2, "run -", {"standard input", "empty"});
  expect_mistake(2, "run --prompt a --prompt-file text", {"--prompt and --prompt-file were both given"});
  expect_mistake(2, "run 'a text'", {"unexpected argument 'a text'"});
  expect_mistake(1, "run --prompt-file nowhere", {"nowhere", "No such file"});
  expect_mistake(1, "run --prompt-ids 3,256", {"256", "0 to 255"});
  expect_mistake(2, "run --prompt-ids 3,x", {"'x'", "not a token id"});
  expect_mistake(2, "run --temperature -1", {"temperature is -1"});
  expect_mistake(2, "run --top-p 0", {"top_p is 0"});
  expect_mistake(2, "run --top-p 1.5", {"top_p is 1.5"});
  expect_mistake(2, "run -n 0", {"--max-new-tokens", "0 is out of range"});
  expect_mistake(2, "run --stop ''", {"stop text 1 of 1 is empty"});
  expect_mistake(2, "run --logprobs many", {"--logprobs", "'many' is not a whole number"});
  expect_mistake(2, "run --beams 2 --temperature 1", {"--temperature is for sampling"});
  expect_mistake(2, "run --image text", {"--image is for images", "model of text"});
  expect_mistake(2, "run --vocabulary text", {"reads bytes", "--vocabulary"});
  expect_mistake(1, "nowhere", {"nowhere", "holds no run"});
  expect_mistake(1, "run --prompt-file text --memory-limit 1", {"a prompt of", "MiB", "1 MiB are available"});
  fs::remove_all(folder_ / "run/checkpoints");
  expect_mistake(1, "run", {"run", "no whole checkpoint"});
}

}  // namespace
}  // namespace routing::generate_test
