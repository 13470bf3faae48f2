// How long the sequences of a training batch are.
//
// Balanced clusters choose their members among all tokens of a sequence. While text is generated the sequence is short
// at first, so there are fewer to choose from than there ever were in training on whole sequences. Cutting each batch
// to a random length shows the model shorter ones too (docs/facts.md G3).
#pragma once

#include "routing/config/experiment.h"

#include <cstdint>

namespace routing {

// Of the batch with that number: uniform over train.shortest_length … train.sequence_length, from the stream (seed,
// "truncated length", batch). train.sequence_length if train.shortest_length is 0.
//
// Throws  ConfigError  train.shortest_length is below 0 or above train.sequence_length
//         InputError   a negative index
std::int64_t truncated_length(const TrainConfig& config, std::int64_t batch_index);

}  // namespace routing
