// What `routing export` was asked for.
#pragma once

#include "commands.h"

#include <string>

namespace routing {

struct ExportOptions {
  std::string run = {};
  std::string checkpoint = "best";
  std::string out = {};
  bool force = false;
  bool json = false;
};

// Returns the exit code. Needs no torch.
int export_run(const ExportOptions& options, const ProgramOptions& program);

}  // namespace routing
