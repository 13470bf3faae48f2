// Gradients summed over ranks while the backward pass goes on: c10d's Reducer, the engine of DistributedDataParallel.
//
// Parameters are put into buckets; a bucket travels as soon as all its gradients are there, while those of earlier
// layers are still computed. After the first backward pass the buckets are regrouped in the order in which gradients
// came. That order decides in which order ranks' numbers are added, so it belongs into a checkpoint: given back at a
// resume, the run goes on with the same bits.
#pragma once

#include "routing/distributed/group/rank_group.h"
#include "routing/optim/named_parameter.h"

#include <memory>
#include <string>
#include <vector>

namespace routing {

// The parameters of each bucket by name, in the order in which they travel.
using BucketOrder = std::vector<std::vector<std::string>>;

class GradientReducer {
 public:
  // `order` is empty in a new run. One rank keeps it as it is and sums nothing. Throws an InputError if it does not
  // name every parameter once.
  GradientReducer(RankGroup& ranks, const std::vector<NamedParameter>& parameters, const BucketOrder& order);
  ~GradientReducer();

  // The backward pass whose gradients, with what was accumulated before it, are to be summed; returns when the sums are
  // there. Those of other backward passes stay where they are. Gradients are summed, not averaged. Throws a
  // ConnectionError if another rank or the network is lost.
  void backward(const at::Tensor& objective);

  // Empty until a backward pass has shown it.
  const BucketOrder& order() const;

 private:
  void regroup();
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace routing
