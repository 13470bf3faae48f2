// Some sequences of a part, to look at a model with.
#pragma once

#include "routing/data/token_view.h"

#include <ATen/ATen.h>

#include <cstdint>

namespace routing {

struct SequencesToTake {
  std::int64_t length = 0;         // tokens of a sequence
  std::int64_t record_length = 0;  // of an image; 0 for text
  std::int64_t count = 10;         // fewer if the part has no more
};

// int64 [sequences, length]: disjoint windows of a text, or the first tokens of images, spread evenly over the part.
//
// Throws  ConfigError  the part has not one, or a sequence is longer than an image
at::Tensor spread_sequences(const TokenView& part, const SequencesToTake& which);

}  // namespace routing
