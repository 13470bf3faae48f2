// Do all ranks hold the same model, bit for bit?
#pragma once

#include "routing/distributed/group/rank_group.h"
#include "routing/model/sequence_model.h"

#include <cstdint>
#include <string>
#include <vector>

namespace routing {

// The ranks' models have drifted apart.
class DriftError : public Error {
 public:
  using Error::Error;
};

struct PartHash {
  std::string part = {};  // "centroids of layer 3", or "weights of layer3"
  std::uint64_t hash = 0;
};
// Hashes of all tensors: centroids with their counts, sums and thresholds for each group of routed heads, then weights
// of each part of the model.
std::vector<PartHash> model_hashes(SequenceModel& model);

// Compares all ranks with rank 0; throws the same DriftError on every rank, which names the part and the ranks.
void check_same_model(RankGroup& ranks, SequenceModel& model, std::int64_t step);

}  // namespace routing
