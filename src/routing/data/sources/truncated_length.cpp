#include "routing/data/sources/truncated_length.h"

#include "routing/core/error.h"
#include "routing/core/random.h"

#include <limits>

namespace routing {

std::int64_t truncated_length(const TrainConfig& config, std::int64_t batch_index) {
  require<InputError>(batch_index >= 0, "length of batch ", batch_index, " asked for, but batches count from 0");
  require<ConfigError>(config.shortest_length >= 0 && config.shortest_length <= config.sequence_length,
                       "train.shortest_length ", config.shortest_length, " is not between 0 and train.sequence_length ",
                       config.sequence_length, "; 0 means that none is cut");
  if (config.shortest_length == 0) return config.sequence_length;
  const std::int64_t lengths = config.sequence_length - config.shortest_length + 1;
  require<ConfigError>(lengths <= std::numeric_limits<std::uint32_t>::max(), "train.sequence_length ",
                       config.sequence_length, " is too long for a random length; set train.shortest_length to 0");
  RandomStream stream(config.seed, "truncated length", {static_cast<std::uint64_t>(batch_index)});
  return config.shortest_length + stream.below(static_cast<std::uint32_t>(lengths));
}

}  // namespace routing
