// Do all ranks hold the same model, bit for bit?
#pragma once

#include "routing/distributed/group/rank_group.h"
#include "routing/model/sequence_model.h"

#include <cstdint>

namespace routing {

// The ranks' models have drifted apart.
class DriftError : public Error {
 public:
  using Error::Error;
};

// Compares hashes of all tensors (centroids with their counts, sums and thresholds for each group of routed heads, then
// weights of each part of the model) with those of rank 0; throws the same DriftError on every rank, which names the
// part and the ranks.
void check_same_model(RankGroup& ranks, SequenceModel& model, std::int64_t step);

}  // namespace routing
