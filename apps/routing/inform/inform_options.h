// What the arguments of `routing info` and `doctor` say.
#pragma once

#include "routing/config/experiment.h"

#include <optional>
#include <string>

namespace routing {

struct InfoOptions {
  std::string run;
  std::string checkpoint = "best";
  std::optional<ExperimentConfig> experiment;  // without a run; the machine if there is none either
  bool json = false;
};

struct DoctorOptions {
  bool json = false;
};

}  // namespace routing
