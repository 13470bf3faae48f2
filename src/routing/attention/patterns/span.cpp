#include "routing/attention/patterns/span.h"

#include "routing/attention/patterns/position_patterns.h"

#include <algorithm>
#include <cmath>

namespace routing {
namespace {

// Added to the logits of keys that do not count: exp of it is 0 in float and in double.
constexpr double kNever = -1e4;

// Rows -reach … reach of a table [2 * max + 1, dim], the outermost again for what lies beyond max.
at::Tensor rows_around_zero(const at::Tensor& table, std::int64_t reach) {
  const std::int64_t max = table.size(0) / 2;
  if (reach <= max) return table.narrow(0, max - reach, 2 * reach + 1);
  return table.index_select(0, at::arange(-reach, reach + 1, table.device()).clamp(-max, max) + max);
}

at::Tensor with_columns(const at::Tensor& rows, double value) {
  std::vector<std::int64_t> sizes = rows.sizes().vec();
  sizes.back() = SpanHeads::kColumns;
  return at::cat({rows, at::full(sizes, value, rows.options())}, -1);
}

}  // namespace

double span_weight(const SpanPattern& pattern, double span, std::int64_t distance) {
  const auto ramp = static_cast<double>(pattern.ramp);
  return std::clamp((ramp + span - static_cast<double>(distance)) / ramp, 0.0, 1.0);
}

std::int64_t span_keys(const SpanPattern& pattern, double span) {
  const auto reach = static_cast<std::int64_t>(std::ceil(static_cast<double>(pattern.ramp) + span));
  return std::clamp<std::int64_t>(reach, 1, pattern.limit);
}

SpanHeads::SpanHeads(const HeadGroupConfig& group, const SpanPattern& config, const PatternContext& context)
    : config_(config),
      kind_(context.kind),
      self_(group.self),
      penalty_(config.penalty * static_cast<double>(group.heads) /
               static_cast<double>(std::max(context.span_heads, group.heads))),
      share_(register_parameter("span_share", at::full({1}, config.initial, context.options))) {}

double SpanHeads::span() const {
  return static_cast<double>(config_.limit) * share_.item<double>();
}

std::int64_t SpanHeads::keys() const {
  return span_keys(config_, span());
}

void SpanHeads::clamp() {
  const at::NoGradGuard no_gradient;
  share_.clamp_(0.0, 1.0);
}

at::Tensor SpanHeads::log_weights() const {
  const std::int64_t reach = keys();
  const auto ramp = static_cast<double>(config_.ramp);
  const at::Tensor distance = at::arange(reach + 1, share_.options().dtype(at::kDouble));
  const at::Tensor span = share_.to(at::kDouble) * static_cast<double>(config_.limit);
  const at::Tensor weight = (span + ramp - distance) / ramp;
  const at::Tensor counts = (weight > 0.0).logical_and(distance < static_cast<double>(reach));
  const at::Tensor fades = counts.logical_and(weight < 1.0);
  // Nothing flows back through the rows that do not fade, not even 0 times infinity.
  const at::Tensor log = at::where(fades, weight, at::ones_like(weight)).log();
  return at::where(counts, log, at::full_like(weight, kNever));
}

at::Tensor SpanHeads::queries_with_span(const at::Tensor& queries) {
  return with_columns(queries, 1.0);
}

at::Tensor SpanHeads::keys_with_span(const at::Tensor& keys) {
  return with_columns(keys, 0.0);
}

AttendOptions SpanHeads::with_span(AttendOptions options, std::int64_t dim) const {
  const std::int64_t reach = keys();
  const at::Tensor past = log_weights() / options.scale;  // of distances 0 … reach
  const at::Tensor bias = at::cat({past.flip(0), past.narrow(0, 1, reach)}).to(share_.scalar_type());
  const at::Tensor coarse = bias.detach().to(at::kBFloat16).to(bias.scalar_type());
  const at::Tensor vectors = options.relative_key.defined() ? rows_around_zero(options.relative_key, reach)
                                                            : at::zeros({bias.size(0), dim}, bias.options());
  options.relative = RelativePosition::true_offset;
  options.relative_key = at::cat({vectors, at::stack({coarse, bias - coarse}, 1)}, 1);
  if (options.relative_value.defined()) options.relative_value = rows_around_zero(options.relative_value, reach);
  return options;
}

at::Tensor SpanHeads::auxiliary_loss(const at::Tensor& /*queries*/, const at::Tensor& /*keys*/,
                                     const Plan& /*plan*/) const {
  if (penalty_ == 0.0) return {};
  return share_.sum() * (penalty_ * static_cast<double>(config_.limit));
}

std::optional<ListRules> SpanHeads::list_rules() const {
  if (kind_ != AttentionKind::causal_self) return std::nullopt;
  return ListRules{.lookback = keys()};
}

std::vector<TokenLists> SpanHeads::token_lists(const at::Tensor& vectors,
                                               std::span<const std::int64_t> first_positions) const {
  const auto tokens = static_cast<std::size_t>(vectors.size(2));
  const TokenLists all_in_one{.counts = std::vector<std::int32_t>(tokens, 1),
                              .lists = std::vector<std::int32_t>(tokens, 0)};
  return std::vector<TokenLists>(first_positions.size() * static_cast<std::size_t>(vectors.size(1)), all_in_one);
}

Plan SpanHeads::make_plan(const PlanRequest& request) {
  return local_plan(request.layout, LocalPattern{.window = keys()}, kind_ == AttentionKind::causal_self, self_);
}

}  // namespace routing
