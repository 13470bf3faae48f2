// What routed heads saw in a step, added up over ranks before the centroids move: so all ranks move them alike, and as
// one rank would that had seen all tokens.
#pragma once

#include "routing/attention/routing/routing_statistics.h"
#include "routing/distributed/group/rank_group.h"
#include "routing/model/sequence_model.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace routing {

// Starts to travel when made; the totals are complete after finish(). Counts are exact, sums are in float64. Other
// numbers of the step may travel along.
class TotalsExchange {
 public:
  struct Extra {
    std::vector<std::int64_t> counts = {};
    std::vector<double> sums = {};
  };
  // All ranks hand over totals of the same groups, clusters and sides.
  TotalsExchange(RankGroup& ranks, std::vector<StepTotals> totals, Extra extra);

  struct Result {
    std::vector<StepTotals> totals = {};
    Extra extra = {};
  };
  Result finish();

 private:
  void exchange_samples();

  RankGroup& ranks_;
  std::vector<StepTotals> totals_;
  Extra extra_;
  at::Tensor counts_, sums_;
  std::unique_ptr<PendingWork> pending_;
};

// What routed heads saw in an evaluation whose batches were spread over ranks: afterwards each rank has the totals of
// all. A rank may have seen nothing.
void share_evaluated_totals(RankGroup& ranks, SequenceModel& model);

}  // namespace routing
