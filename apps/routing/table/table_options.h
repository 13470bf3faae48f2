// What the arguments of `routing table` say.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace routing {

struct TableCommandOptions {
  std::string name;
  std::string out;
  std::string data;
  std::string scale;
  std::string rows;
  std::string seeds = "1";
  std::string part;
  std::string selection = "balanced";
  std::vector<std::string> settings;
  std::int64_t steps = 0;
  double minutes = 0.0;
  bool report = false;
  bool list = false;
  bool json = false;
};

}  // namespace routing
