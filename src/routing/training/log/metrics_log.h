// metrics.jsonl: what was measured, one JSON object per line, for people and scripts.
#pragma once

#include "routing/core/files.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <vector>

namespace routing {

class MetricsLog {
 public:
  // Opens or creates the file and goes on at its end. A last line without its end, left by a process that was killed
  // while writing, is removed.
  explicit MetricsLog(const std::filesystem::path& path);

  // Writes one line, with the system on return. The object has a whole number "step" >= 0. Numbers that JSON does not
  // know (infinite or not a number) become null. If the disk is full the file keeps its whole lines.
  void append(const nlohmann::ordered_json& object);

  // Brings everything written to the disk.
  void sync() { file_.sync(); }

  // For a resume from the checkpoint of this step: rewrites the file in one step with only those whole lines whose
  // "step" is not larger. Lines that are not an object with a step are dropped too.
  void cut_back_to(std::int64_t step);

  const std::filesystem::path& path() const { return file_.path(); }

 private:
  AppendFile file_;
};

// Every whole line of a metrics.jsonl, in order. A FileError names the line that is not a JSON object; a last line
// without its end is not whole.
std::vector<nlohmann::ordered_json> read_metrics(const std::filesystem::path& path);

}  // namespace routing
