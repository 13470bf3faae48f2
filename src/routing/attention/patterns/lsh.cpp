#include "routing/attention/patterns/lsh.h"

#include "routing/attention/plan/plan_builder.h"
#include "routing/core/error.h"
#include "routing/core/parallel.h"
#include "routing/core/random.h"
#include "routing/kernels/centroids/lsh_projection.h"
#include "routing/ops/random_fill.h"

#include <limits>
#include <vector>

namespace routing {
namespace {

using Positions = std::vector<std::int32_t>;

// The largest of the projections and their opposites; the first on a tie.
std::int32_t bucket_of(const double* projected, std::int64_t half) {
  double best = -std::numeric_limits<double>::infinity();
  std::int64_t bucket = 0;
  for (const double sign : {1.0, -1.0}) {
    for (std::int64_t column = 0; column < half; ++column) {
      if (sign * projected[column] > best) {
        best = sign * projected[column];
        bucket = column + (sign < 0.0 ? half : 0);
      }
    }
  }
  return static_cast<std::int32_t>(bucket);
}

// The members of each (round, bucket) of one unit, by counting sort, which keeps time order.
std::vector<Positions> members_of_buckets(const Positions& valid, const std::int32_t* buckets, std::int64_t tokens,
                                          const LshPattern& pattern) {
  std::vector<Positions> members(static_cast<std::size_t>(pattern.rounds * pattern.buckets));
  for (std::int64_t round = 0; round < pattern.rounds; ++round) {
    for (const std::int32_t position : valid) {
      const std::int64_t bucket = buckets[round * tokens + position];
      members[static_cast<std::size_t>(round * pattern.buckets + bucket)].push_back(position);
    }
  }
  return members;
}

void check_buckets(const char* name, const at::Tensor& buckets, const TokenLayout& layout, const LshPattern& pattern,
                   std::int64_t tokens) {
  const std::vector<std::int64_t> expected{layout.batch, layout.heads, pattern.rounds, tokens};
  require<InputError>(buckets.scalar_type() == at::kInt && buckets.sizes() == at::IntArrayRef(expected), "lsh: ", name,
                      " are ", buckets.scalar_type(), " ", buckets.sizes(), ", but must be Int ",
                      at::IntArrayRef(expected));
  require<InputError>(buckets.numel() == 0 || (buckets.min().item<std::int64_t>() >= 0 &&
                                               buckets.max().item<std::int64_t>() < pattern.buckets),
                      "lsh: ", name, " lie outside 0 to ", pattern.buckets - 1);
}

}  // namespace

at::Tensor lsh_rotations(const LshPattern& pattern, std::int64_t heads, std::int64_t dim, std::uint64_t key,
                         const at::TensorOptions& options) {
  at::Tensor rotations = at::empty({heads, pattern.rounds, dim, pattern.buckets / 2}, options);
  for (std::int64_t head = 0; head < heads; ++head) {
    fill_normal(rotations[head], 0.0, 1.0, RandomStream(key, "lsh rotations", {static_cast<std::uint64_t>(head)}));
  }
  return rotations;
}

at::Tensor lsh_buckets(const at::Tensor& vectors, const at::Tensor& rotations) {
  require<InputError>(vectors.dim() == 4 && rotations.dim() == 4 && vectors.size(1) == rotations.size(0) &&
                          vectors.size(3) == rotations.size(2),
                      "lsh: vectors ", vectors.sizes(), " do not fit rotations ", rotations.sizes(),
                      ", which are [heads, rounds, dim, buckets / 2]");
  const at::Tensor x = vectors.detach().to(at::kCPU, at::kDouble).contiguous();
  const at::Tensor r = rotations.detach().to(at::kCPU, at::kDouble).contiguous();
  const std::int64_t heads = x.size(1);
  const std::int64_t tokens = x.size(2);
  const std::int64_t dim = x.size(3);
  const std::int64_t rounds = r.size(1);
  const std::int64_t half = r.size(3);
  at::Tensor buckets = at::empty({x.size(0), heads, rounds, tokens}, at::kInt);
  parallel_for(0, x.size(0) * heads * rounds, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t index = first; index < last; ++index) {
      const std::int64_t unit = index / rounds;
      const double* rotation = r.data_ptr<double>() + (unit % heads * rounds + index % rounds) * dim * half;
      std::vector<double> projected(static_cast<std::size_t>(half));
      for (std::int64_t token = 0; token < tokens; ++token) {
        kernels::lsh_projection(x.data_ptr<double>() + (unit * tokens + token) * dim, rotation, {1, dim, half},
                                projected.data());
        buckets.data_ptr<std::int32_t>()[index * tokens + token] = bucket_of(projected.data(), half);
      }
    }
  });
  return buckets;
}

Plan lsh_plan(const TokenLayout& layout, const LshPattern& pattern, const VisibilityRules& rules,
              const at::Tensor& query_buckets, const at::Tensor& key_buckets) {
  const bool two_lists = key_buckets.defined();
  check_buckets("query buckets", query_buckets, layout, pattern, layout.num_queries);
  if (two_lists) check_buckets("key buckets", key_buckets, layout, pattern, layout.num_keys);
  const auto units = static_cast<std::size_t>(layout.batch * layout.heads);
  std::vector<std::vector<Positions>> queries(units);
  std::vector<std::vector<Positions>> keys(units);
  parallel_for(0, layout.batch * layout.heads, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t index = first; index < last; ++index) {
      const auto unit = static_cast<std::size_t>(index);
      const std::size_t sequence = unit / static_cast<std::size_t>(layout.heads);
      const auto members = [&](const Positions& valid, const at::Tensor& buckets, std::int64_t tokens) {
        return members_of_buckets(valid, buckets.data_ptr<std::int32_t>() + index * pattern.rounds * tokens, tokens,
                                  pattern);
      };
      queries[unit] = members(layout.valid_queries[sequence], query_buckets, layout.num_queries);
      if (two_lists) keys[unit] = members(layout.valid_keys[sequence], key_buckets, layout.num_keys);
    }
  });
  PlanBuilder builder(layout, rules, two_lists ? PlanBuilder::Lists::two : PlanBuilder::Lists::one);
  for (std::size_t unit = 0; unit < units; ++unit) {
    for (std::size_t group = 0; group < queries[unit].size(); ++group) {
      const ListRange range = builder.add_queries(queries[unit][group]);
      builder.add_group(range, two_lists ? builder.add_keys(keys[unit][group]) : range);
    }
    builder.end_unit();
  }
  return builder.build();
}

}  // namespace routing
