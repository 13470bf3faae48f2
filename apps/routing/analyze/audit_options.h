// What the arguments of `routing audit` say.
#pragma once

#include "routing/config/experiment.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace routing {

struct AuditSubjectOptions {
  std::string run;  // a trained model; empty for fresh weights of the experiment below
  std::string checkpoint = "best";
  std::string preset;
  std::string file;
  std::vector<std::string> settings;
  ExperimentConfig experiment;  // what those three amount to
  std::string data;             // other data than the experiment's
  std::string vocabulary;
  std::int64_t sequence_length = 0;
  std::uint64_t seed = 1;  // of made-up tokens
  std::function<void(const std::string&)> notes = {};
};

struct AuditOptions : AuditSubjectOptions {
  std::int64_t positions = 32;
  std::int64_t task_seeds = 1;
  std::string precision;
  bool quick = false;
  bool no_write = false;
  bool json = false;
};

}  // namespace routing
