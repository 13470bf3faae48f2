// Small models to sample from, trained through the program.
#pragma once

#include "cli/program_fixture.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace routing {

// Any tiny preset made so small that a step takes milliseconds.
inline const std::string kSmallModel =
    " --quiet --set model.layers=2 --set model.width=32 --set model.embedding_width=0 --set model.feedforward_width=64"
    " --set attention.heads=4 --set attention.content_heads=2 --set attention.add_content=false"
    " --set attention.content_layers=all --set local.window=16 --set routing.window=16"
    " --set routing.clusters=4 --set train.sequence_length=48 --set train.batch_size=2 --set train.eval_tokens=96"
    " --set train.warmup_steps=2 --set data.vocabulary_size=400 --set data.cache=cache ";

class CliGenerate : public Cli {
 protected:
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }

  // A model of bytes in the folder "run", and the text it learned from in "text".
  void train_on_bytes(int steps, const std::string& options = "") const {
    std::string text;
    for (int i = 0; i < 1000; ++i) text += "line " + std::to_string(i * i % 89) + " of a text\n";
    write("text", text);
    train("tiny-enwik8", "--data text --steps " + std::to_string(steps) + " --set train.learning_rate=1e-2 " + options);
  }
  void train(const std::string& preset, const std::string& options) const {
    const Outcome outcome = run("train --preset " + preset + kSmallModel + "--out run " + options);
    if (outcome.exit_code != 0) throw std::runtime_error("no model: " + outcome.err);
  }

  // What a quiet `routing generate run …` writes; `before` is typed before the program.
  std::string generated(const std::string& options, const std::string& before = "") const {
    const Outcome outcome = run("generate run --quiet " + options, before);
    EXPECT_EQ(outcome.exit_code, 0) << options << "\n" << outcome.err;
    EXPECT_EQ(outcome.err, "") << options;
    return outcome.out;
  }
  std::vector<nlohmann::json> objects(const std::string& options) const {
    std::istringstream lines(generated(options + " --json"));
    std::vector<nlohmann::json> all;
    for (std::string line; std::getline(lines, line);) all.push_back(nlohmann::json::parse(line));
    if (all.empty()) throw std::runtime_error("no sample for " + options);
    return all;
  }

  // The exit code, nothing on standard output, and one line (a hint may follow) that holds all the parts.
  void expect_mistake(int exit_code, const std::string& arguments, const std::vector<std::string>& parts) const {
    const Outcome outcome = run("generate --quiet " + arguments);
    EXPECT_EQ(outcome.exit_code, exit_code) << arguments << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "") << arguments;
    const std::string line = outcome.err.substr(0, outcome.err.find('\n'));
    EXPECT_EQ(line.rfind("routing: error: ", 0), 0U) << arguments << "\n" << outcome.err;
    for (const std::string& part : parts) EXPECT_TRUE(contains(line, part)) << part << " in " << outcome.err;
    const std::string rest = outcome.err.substr(std::min(outcome.err.size(), line.size() + 1));
    EXPECT_TRUE(rest.empty() || rest.rfind("  hint: ", 0) == 0) << outcome.err;
  }
};

inline std::size_t times(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace routing
