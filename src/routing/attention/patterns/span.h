// Adaptive span (Sukhbaatar et al. 2019, "Adaptive Attention Span in Transformers"): heads learn how far back they
// read.
//
//   m(x)  = clamp((ramp + z - x) / ramp, 0, 1)         of a key at distance x = i - j, for the span z of the heads
//   A_ij  = m(i - j) exp(s_ij) / sum over j' of m(i - j') exp(s_ij')
//   loss += penalty * mean of z over the heads of the layer that have a span
//
// m is a factor of exp(s), so log m(x) is added to the logit. That is a number per distance, as the rows of a relative
// table are vectors per distance: queries get two columns of ones, keys two of zeros, and row x of the table the two
// parts of log m(x) / scale. All attention stays what it is, the gradient of the table is that of log m, and its
// derivative leads to z. Two columns, because one is rounded where factors are bfloat16: the first holds what bfloat16
// can hold, the second the rest, and their sum is right to 2^-17.
//
// Keys with m = 0 are not in the plan, whose lookback follows the span: short spans are cheap. The derivative of log m
// is 1 / (ramp m), which grows without bound where m falls to 0, but what it is multiplied with is proportional to m.
// It is that of z as it stands; where z is a whole number, of z and a little more, but for the key that would come in.
#pragma once

#include "routing/attention/patterns/pattern.h"
#include "routing/ops/attend/attend.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace routing {

// m(x) of heads with the span z.
double span_weight(const SpanPattern& pattern, double span, std::int64_t distance);
// The keys that heads with the span z read: distances x with m(x) > 0 that are below the limit.
std::int64_t span_keys(const SpanPattern& pattern, double span);

// Heads that share one span; layers have a group of one head for each span (config/span_heads.h).
class SpanHeads : public Pattern {
 public:
  static constexpr std::int64_t kColumns = 2;  // that queries, keys and tables have beside those of the head

  SpanHeads(const HeadGroupConfig& group, const SpanPattern& config, const PatternContext& context);

  double span() const;        // z, in tokens
  std::int64_t keys() const;  // of this span
  at::Tensor& share() { return share_; }
  // Back into 0 … limit, where an optimiser has moved it out of there.
  void clamp();

  // log m(x) for x = 0 … keys(), differentiable in the span; double. The last row is for everything farther away and
  // far below what any logit can make up for.
  at::Tensor log_weights() const;
  // Rows [batch, heads, tokens, dim] with the columns that the table of with_span() asks for.
  static at::Tensor queries_with_span(const at::Tensor& queries);
  static at::Tensor keys_with_span(const at::Tensor& keys);
  // The options of the same heads with log m in their table of keys, whose rows reach as far as the heads do.
  AttendOptions with_span(AttendOptions options, std::int64_t dim) const;

  SpanHeads* span_heads() override { return this; }
  at::Tensor auxiliary_loss(const at::Tensor& queries, const at::Tensor& keys, const Plan& plan) const override;
  std::optional<ListRules> list_rules() const override;
  std::vector<TokenLists> token_lists(const at::Tensor& vectors,
                                      std::span<const std::int64_t> first_positions) const override;

 protected:
  Plan make_plan(const PlanRequest& request) override;

 private:
  SpanPattern config_;
  AttentionKind kind_;
  SelfRule self_;
  double penalty_ = 0.0;  // for each token of this span
  at::Tensor share_;      // [1]: z / limit, the parameter; between 0 and 1 it moves as far in a step as others do
};

}  // namespace routing
