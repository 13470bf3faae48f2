// routing train over several ranks, each a process of its own on the loopback.
#pragma once

#include "cli/program_fixture.h"
#include "test_paths.h"

#include <nlohmann/json.hpp>

#include <arpa/inet.h>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

namespace routing {

class CliRanks : public Cli {
 protected:
  CliRanks() {
    std::ofstream text(folder_ / "text");
    for (int i = 0; i < 3000; ++i) text << "line " << i * i % 89 << " of " << i * 7 % 31 << " in a text\n";
    std::ofstream other(folder_ / "other");
    for (int i = 0; i < 3000; ++i) other << "line " << i * i % 83 << " of another text\n";
  }

  // Dropout everywhere, threshold routing, and a schedule that does not depend on the number of steps.
  static std::string small() {
    return "train --preset tiny-enwik8 --quiet --precision fp32 --threads 1 --set model.layers=2 --set model.width=64"
           " --set model.feedforward_width=128 --set attention.heads=2 --set attention.content_heads=1"
           " --set local.window=16 --set routing.window=16 --set routing.clusters=8 --set train.sequence_length=64"
           " --set train.batch_size=5 --set train.log_every=1 --set train.eval_every=25 --set train.eval_tokens=1000"
           " --set train.checkpoint_every=5 --set train.keep_checkpoints=100 --set train.warmup_steps=20"
           " --set train.learning_rate=3e-4 --set train.decay_steps=1000 --set model.residual_dropout=0.1"
           " --set model.attention_dropout=0.1 --set eval.batch_size=2 ";
  }
  static std::string train(const std::string& run, int ranks, int steps) {
    return small() + "--data text --out " + run + " --ranks " + std::to_string(ranks) + " --steps " +
           std::to_string(steps) + " ";
  }

  Outcome expect_done(const std::string& arguments) const {
    Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << arguments << "\n" << outcome.err;
    return outcome;
  }

  // metrics.jsonl by key: step -> value.
  std::map<int, double> curve(const std::string& run, const std::string& key) const {
    std::map<int, double> values;
    std::ifstream file(folder_ / run / "metrics.jsonl");
    for (std::string line; std::getline(file, line);) {
      const auto object = nlohmann::json::parse(line);
      if (object.contains(key)) values[object.at("step").get<int>()] = object.at(key).get<double>();
    }
    return values;
  }

  static double largest_relative_difference(const std::map<int, double>& a, const std::map<int, double>& b) {
    double largest = a.size() == b.size() && !a.empty() ? 0.0 : HUGE_VAL;
    for (const auto& [step, value] : a) {
      largest = b.contains(step) ? std::max(largest, std::abs(b.at(step) - value) / std::abs(value)) : HUGE_VAL;
    }
    return largest;
  }

  fs::path checkpoint(const std::string& run, int step) const {
    const std::string number = std::to_string(step);
    return folder_ / run / "checkpoints" / ("step-" + std::string(8 - number.size(), '0') + number);
  }
  // Weights, buffers and the optimiser's state.
  std::string bytes_of_checkpoint(const std::string& run, int step) const {
    const fs::path folder = checkpoint(run, step);
    return text_of(folder / "model.safetensors") + text_of(folder / "state.safetensors");
  }
  // The bytes of each tensor of a safetensors file whose name ends so.
  std::map<std::string, std::string> tensors(const fs::path& path, const std::string& ending) const {
    const std::string file = text_of(path);
    std::uint64_t header = 0;
    std::memcpy(&header, file.data(), sizeof(header));
    std::map<std::string, std::string> found;
    const auto entries = nlohmann::json::parse(file.substr(8, header));
    for (const auto& [name, entry] : entries.items()) {
      if (!name.ends_with(ending)) continue;
      const auto place = entry.at("data_offsets").get<std::vector<std::size_t>>();
      found[name] = file.substr(8 + header + place[0], place[1] - place[0]);
    }
    return found;
  }

  static int free_port() {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), size), 0);
    ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
    ::close(socket);
    return ntohs(address.sin_port);
  }

  // One process of the contract of torchrun.
  struct Process {
    int rank = 0;
    int size = 2;
    std::string arguments = {};
  };
  // All at once, as srun would start them; their outcomes in order.
  std::vector<Outcome> run_processes(const std::vector<Process>& processes, int port) const {
    std::string command = "cd '" + folder_.string() + "'; ";
    for (std::size_t i = 0; i < processes.size(); ++i) {
      const Process& process = processes[i];
      const std::string name = ".process" + std::to_string(i);
      command += "(RANK=" + std::to_string(process.rank) + " WORLD_SIZE=" + std::to_string(process.size) +
                 " LOCAL_RANK=" + std::to_string(process.rank) +
                 " MASTER_ADDR=127.0.0.1 MASTER_PORT=" + std::to_string(port) + " '" + ROUTING_PROGRAM + "' " +
                 process.arguments + " > " + name + ".out 2> " + name + ".err; echo $? > " + name + ".code) & ";
    }
    EXPECT_EQ(std::system((command + "wait").c_str()), 0);
    std::vector<Outcome> outcomes;
    for (std::size_t i = 0; i < processes.size(); ++i) {
      const std::string name = ".process" + std::to_string(i);
      outcomes.push_back({std::atoi(text_of(folder_ / (name + ".code")).c_str()), text_of(folder_ / (name + ".out")),
                          text_of(folder_ / (name + ".err"))});
    }
    return outcomes;
  }

  // One line, an error, that holds all the parts.
  static void expect_one_line(const Outcome& outcome, int exit_code, const std::vector<std::string>& parts) {
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_EQ(outcome.err.rfind("routing: error: ", 0), 0U) << outcome.err;
    for (const std::string& part : parts) EXPECT_TRUE(contains(outcome.err, part)) << part << "\n" << outcome.err;
  }
};

}  // namespace routing
