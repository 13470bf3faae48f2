// ZeRO stage 1: each rank keeps the optimiser's moments of its share of the parameters, steps those, and hands the new
// values to the others. Results have the same bits as without.
#pragma once

#include "routing/distributed/group/rank_group.h"
#include "routing/optim/named_parameter.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace routing {

// Whole parameters go to ranks, the largest first, each to the rank that has least; ties to the lower rank.
std::vector<int> spread_parameters(const std::vector<std::int64_t>& sizes, int ranks);

class OptimizerShards {
 public:
  OptimizerShards(RankGroup& ranks, std::vector<NamedParameter> parameters);

  // The parameters that this rank steps.
  const std::vector<NamedParameter>& own() const { return own_; }
  // After the step: everybody gets everybody's new values.
  void share_values() const;
  // The state of all ranks on rank 0, of this rank elsewhere. Called by all.
  std::map<std::string, at::Tensor> gather_state(std::map<std::string, at::Tensor> own) const;
  // Does the moment "<name of a parameter>.<moment>" belong to this rank? "steps" belongs to all.
  bool owns(const std::string& moment) const;

 private:
  RankGroup& ranks_;
  std::vector<NamedParameter> parameters_, own_;
  std::vector<int> owner_;
};

// Rank 0's tensors on every rank; what `keep` refuses is dropped as soon as it has come. Called by all, with anything
// on the other ranks.
std::map<std::string, at::Tensor> broadcast_tensors(RankGroup& ranks, const std::map<std::string, at::Tensor>& tensors,
                                                    const std::function<bool(const std::string&)>& keep);

std::int64_t bytes_of(const std::map<std::string, at::Tensor>& tensors);

}  // namespace routing
