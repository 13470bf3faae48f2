// Routing attention as a pattern: tokens choose clusters by their scores against centroids, clusters are groups.
#pragma once

#include "routing/attention/patterns/pattern.h"
#include "routing/attention/routing/centroids.h"

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace routing {

// Expects queries (and separate keys) that are layer-normalised without gain or bias.
//
// balanced    group c holds the `window` best tokens of centroid c; whether a token is in it depends on later tokens
// nearest,    group c holds the tokens that chose it, sorted by time, and a query looks back over the last `window` of
// threshold   them (and ahead when bidirectional); a token's choice depends on the token alone
//
// With separate queries and keys both choose, over the same centroids, and a group has two lists. In cross-attention
// there is no common time: a query reads its clusters' keys without a window.
class RoutingGroups : public Pattern {
 public:
  RoutingGroups(const HeadGroupConfig& group, const RoutingPattern& config, const PatternContext& context);

  // The commitment loss: weight * mean over real tokens, heads and dimensions of (x - centroid of the best s)^2, for
  // queries and, if separate, for keys; differentiable in them, not in the centroids.
  at::Tensor auxiliary_loss(const at::Tensor& queries, const at::Tensor& keys, const Plan& plan) const override;
  Centroids* centroids() override { return centroids_.get(); }
  // A list per cluster. None for balanced queries, which compete with later ones.
  std::optional<ListRules> list_rules() const override;
  std::vector<TokenLists> token_lists(const at::Tensor& vectors,
                                      std::span<const std::int64_t> first_positions) const override;
  KeyListKind key_list_kind() const override { return KeyListKind::by_content; }
  std::vector<TokenLists> memory_lists(const at::Tensor& keys, std::span<const std::int32_t> valid) const override;

 protected:
  Plan make_plan(const PlanRequest& request) override;

 private:
  RoutingPattern config_;
  RoutingPattern key_config_;  // of separate keys
  VisibilityRules rules_;
  AttentionKind kind_;
  std::shared_ptr<Centroids> centroids_;
};

// What a likelihood computed with this pattern is worth: "causal" or "selection reads the future".
const char* validity_label(const RoutingPattern& pattern, AttentionKind kind);

}  // namespace routing
