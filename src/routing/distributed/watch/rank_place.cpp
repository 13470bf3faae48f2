#include "routing/distributed/watch/rank_place.h"

#include "routing/core/error.h"

#include <charconv>
#include <cstdlib>

namespace routing {
namespace {

constexpr int kMostRanks = 1 << 16;
constexpr int kHighestPort = 65535;

int number_in(const ReadVariable& variable, const std::string& name, int smallest, int largest) {
  const std::string text = variable(name).value_or("");
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  require<ConfigError>(whole && value >= smallest && value <= largest, name, " is '", text,
                       "', but must be a whole number from ", smallest, " to ", largest);
  return value;
}

}  // namespace

std::optional<std::string> environment_variable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::optional<RankPlace> rank_place(const ReadVariable& variable) {
  if (!variable("RANK") && !variable("WORLD_SIZE")) return std::nullopt;
  for (const char* name : {"RANK", "WORLD_SIZE"}) {
    const std::string other = std::string(name) == "RANK" ? "WORLD_SIZE" : "RANK";
    require<ConfigError>(variable(name).has_value(), other, " is ", variable(other).value_or(""), ", but ", name,
                         " is not set; torchrun sets both, docs/distributed.md shows srun and mpirun");
  }
  RankPlace place;
  place.size = number_in(variable, "WORLD_SIZE", 1, kMostRanks);
  place.rank = number_in(variable, "RANK", 0, kMostRanks);
  require<ConfigError>(place.rank < place.size, "RANK is ", place.rank, ", but WORLD_SIZE is ", place.size,
                       ": ranks count from 0 to WORLD_SIZE - 1");
  if (variable("LOCAL_RANK")) place.local_rank = number_in(variable, "LOCAL_RANK", 0, kMostRanks);
  if (variable("TORCHELASTIC_RESTART_COUNT")) {
    place.attempt = number_in(variable, "TORCHELASTIC_RESTART_COUNT", 0, kMostRanks);
  }
  if (variable("ROUTING_ATTEMPT")) place.attempt = number_in(variable, "ROUTING_ATTEMPT", 0, kMostRanks);
  place.store_is_kept = variable("TORCHELASTIC_USE_AGENT_STORE").value_or("") == "True";
  if (place.size == 1) return place;
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT"}) {
    require<ConfigError>(variable(name).has_value(), "WORLD_SIZE is ", place.size, ", but ", name,
                         " is not set; all ranks need the address and port of rank 0");
  }
  place.master_address = *variable("MASTER_ADDR");
  place.master_port = static_cast<std::uint16_t>(number_in(variable, "MASTER_PORT", 1, kHighestPort));
  return place;
}

}  // namespace routing
