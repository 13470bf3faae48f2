// `routing eval --nats FILE`: what every token cost, a line of JSON for each window.
//
//   {"tokens": [ids], "nats": [numbers], "scored_from": 0}      and "source": [ids] where an encoder has read one
//
// nats[i] is -ln p of tokens[i], given those before it in the window (and, with a memory, the windows before); those
// before scored_from are context and do not count in the result.
#pragma once

#include "routing/core/files.h"
#include "routing/evaluation/likelihood.h"

#include <filesystem>
#include <string>

namespace routing {

// The line of a window, with its end.
std::string nats_line(const ScoredWindow& window);

class NatsFile {
 public:
  explicit NatsFile(const std::filesystem::path& path) : file_(path) {}
  void add(const ScoredWindow& window);
  // The file takes its place; without this nothing is left of it.
  void commit() { file_.commit(); }

 private:
  AtomicFile file_;
};

}  // namespace routing
