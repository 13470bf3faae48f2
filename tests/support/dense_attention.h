// The attention matrix of a probe by the dense oracle, for analysis of single heads.
#pragma once

#include "routing/attention/head_probe.h"
#include "support/dense_oracle.h"

namespace routing::support {

// [batch, heads, queries, keys]: attention to values that are the rows of the identity.
inline at::Tensor dense_attention(const GroupProbe& probe) {
  const at::Tensor q = probe.queries.to(at::kDouble);
  const at::Tensor k = probe.keys.to(at::kDouble);
  const std::int64_t keys = k.size(2);
  const at::Tensor v = at::eye(keys, at::kDouble).expand({k.size(0), k.size(1), keys, keys});
  AttendOptions options{
      .scale = probe.scale, .merge = probe.merge, .merge_eps = probe.merge_eps, .relative = probe.relative};
  if (probe.relative_key.defined()) options.relative_key = probe.relative_key.to(at::kDouble);
  if (probe.recency.defined()) options.recency = probe.recency.to(at::kDouble);
  return dense_attend(q, k, v, probe.plan, options).output;
}

}  // namespace routing::support
