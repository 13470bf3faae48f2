// How healthy are the clusters of each routed head of a model now?
#pragma once

#include "routing/evaluation/token_likelihood.h"
#include "routing/model/sequence_model.h"

#include <cstdint>
#include <string>
#include <vector>

namespace routing {

// One routed head, over the tokens of an evaluation or as its checkpoint remembers it.
struct HeadHealth {
  std::string attention = {};        // by name: "layer 2"
  std::int64_t head = 0;             // counted over all heads of its attention
  std::vector<double> members = {};  // of each cluster
  double tokens = 0.0;               // queries that were looked at
  double unrouted = 0.0;             // of these, those in no cluster
  double overlapping = 0.0;          // of these, those in several
  double dead_share = 0.0;           // dead: fewer members than this share of tokens / clusters

  double memberships() const;  // all together
  // Relative to log(clusters): 1 is perfectly even; 0 of no members.
  double entropy() const;
  std::int64_t dead() const;
  double smallest() const;
  double largest() const;
};

// Counted from the plans of an evaluation: every cluster's members, every token's clusters. In the order of layers and
// heads; empty without routed heads.
std::vector<HeadHealth> head_health_of_tokens(TransformerImpl& model, TokenView tokens,
                                              const LikelihoodOptions& options);

// From the buffers of any model, without data: members are the moving averages of the tokens that moved each centroid
// in a step of training. It is not known how many tokens were in no cluster or in several: both are 0. Heads with
// routing.update = sum keep no averages and are left out.
std::vector<HeadHealth> head_health_of_buffers(SequenceModel& model);

}  // namespace routing
