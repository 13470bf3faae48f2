// What was read of one run's files for the page, and kept for as long as they stay the same.
#pragma once

#include "lab/runs/run_history.h"
#include "serve/page/growing_lines.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace routing {

class RunFiles {
 public:
  // `number` tells it from every other one, also of the same folder later.
  RunFiles(std::filesystem::path folder, std::uint64_t number);
  RunFiles(const RunFiles&) = delete;
  RunFiles& operator=(const RunFiles&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  std::uint64_t number() const { return number_; }

  // As run_json(), from the history that metrics() has grown; `problem` as it stands, with its paths.
  const nlohmann::ordered_json& summary();

  GrowingLines& metrics() { return metrics_; }
  GrowingLines& clusters() { return clusters_; }

  // By step, at most so many, evenly thinned with the last one kept: {"step", "kind", "text" | "file"}.
  const nlohmann::ordered_json& samples(std::size_t most);
  // Changes with what samples() gives.
  std::uint64_t samples_version() const { return samples_version_; }

 private:
  class Metrics : public LineListener {
   public:
    void restart() override { history_ = {}; }
    LineMark take(const nlohmann::ordered_json& line) override;
    const GrowingHistory& history() const { return history_; }

   private:
    GrowingHistory history_;
  };
  class Clusters : public LineListener {
   public:
    void restart() override {}
    LineMark take(const nlohmann::ordered_json& line) override;
  };
  // Facts of all files that a summary is made of.
  std::vector<FileFacts> look() const;

  std::filesystem::path folder_;
  std::uint64_t number_;
  Metrics history_;
  Clusters shares_;
  GrowingLines metrics_;
  GrowingLines clusters_;

  nlohmann::ordered_json summary_ = {};
  std::vector<FileFacts> summarized_ = {};
  bool was_locked_ = false;

  nlohmann::ordered_json samples_ = nlohmann::ordered_json::array();
  std::optional<FileFacts> listed_ = std::nullopt;  // the folder of samples; nothing: list it again
  std::uint64_t samples_version_ = 0;
};

// `count` of these, evenly, the first and the last among them; all if there are no more.
std::vector<std::size_t> evenly_thinned(const std::vector<std::size_t>& all, std::size_t count);

}  // namespace routing
