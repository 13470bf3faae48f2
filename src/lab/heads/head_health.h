// How healthy are the clusters of each routed head of a model now?
#pragma once

#include "routing/evaluation/token_likelihood.h"
#include "routing/model/sequence_model.h"

#include <cstdint>
#include <limits>
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
  double fallback = 0.0;             // of these, those that passed no threshold
  std::vector<double> moving = {};   // tokens that would move each centroid in training, of queries and keys
  // Of a query's row of attention, over the queries that read anything; not a number where nobody looked.
  double mean_largest_weight = std::numeric_limits<double>::quiet_NaN();
  double dead_share = 0.0;  // dead: fewer members than this share of tokens / clusters

  double memberships() const;  // all together
  // Relative to log(clusters): 1 is perfectly even; 0 of no members.
  double entropy() const;
  double moving_entropy() const;
  std::int64_t dead() const;
  double smallest() const;
  double largest() const;
};

// Counted from the plans of an evaluation: every cluster's members, every token's clusters; what moves centroids and
// what falls back as the selection counts it. In the order of layers and heads; empty without routed heads.
std::vector<HeadHealth> head_health_of_tokens(SequenceModel& model, TokenView tokens, const LikelihoodOptions& options);

// How sharp attention is: sets mean_largest_weight of the heads of head_health_of_tokens. Looks at `queries` positions
// of each sequence of tokens [sequences, n] (0 for all), the same ones in every head.
//
// Throws  InputError   the heads are not those of the model
void add_largest_weights(SequenceModel& model, const at::Tensor& tokens, std::int64_t queries,
                         std::vector<HeadHealth>& heads);

// From the buffers of any model, without data: members are the moving averages of the tokens that moved each centroid
// in a step of training, and so is `moving`. It is not known how many tokens were in no cluster or in several or passed
// no threshold: these are 0. Heads with routing.update = sum keep no averages and are left out.
std::vector<HeadHealth> head_health_of_buffers(SequenceModel& model);

}  // namespace routing
