// Where a process stands among the ranks of a run, by the contract of torchrun: RANK, WORLD_SIZE, LOCAL_RANK,
// MASTER_ADDR, MASTER_PORT.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace routing {

struct RankPlace {
  int rank = 0;
  int size = 1;
  int local_rank = 0;  // on its machine
  std::string master_address = {};
  std::uint16_t master_port = 0;
  // Somebody else keeps the store at master_address:master_port (torchrun, or our own --ranks); otherwise rank 0 does.
  bool store_is_kept = false;
  int attempt = 0;  // counts the times the run was started anew after a failure
};

// Reads a variable of the environment; nothing where it is not set.
using ReadVariable = std::function<std::optional<std::string>(const std::string& name)>;
std::optional<std::string> environment_variable(const std::string& name);

// Nothing where neither RANK nor WORLD_SIZE is set. Throws a ConfigError that names the variable that is missing, no
// number or out of range.
std::optional<RankPlace> rank_place(const ReadVariable& variable = environment_variable);

}  // namespace routing
