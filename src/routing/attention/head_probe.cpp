#include "routing/attention/head_probe.h"

#include "routing/core/error.h"
#include "routing/ops/attend/visibility.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace routing {
namespace {

void check_place(const GroupProbe& probe, const ProbedQuery& at) {
  const Plan& plan = probe.plan;
  require<InputError>(at.sequence >= 0 && at.sequence < plan.batch && at.head >= 0 && at.head < plan.heads &&
                          at.query >= 0 && at.query < plan.num_queries,
                      "a probe of ", plan.batch, " sequences, ", plan.heads, " heads and ", plan.num_queries,
                      " queries was asked for query ", at.query, " of head ", at.head, " of sequence ", at.sequence,
                      "; all count from 0");
}

template <class Scalar>
double dot(const Scalar* first, const Scalar* second, std::int64_t dim) {
  double sum = 0.0;
  for (std::int64_t i = 0; i < dim; ++i) sum += static_cast<double>(first[i]) * static_cast<double>(second[i]);
  return sum;
}

// The products of one query with keys and with rows of the relative table.
template <class Scalar>
class QueryProducts {
 public:
  QueryProducts(const GroupProbe& probe, const ProbedQuery& at)
      : dim_(probe.queries.size(3)),
        query_(probe.queries.data_ptr<Scalar>() +
               ((at.sequence * probe.heads() + at.head) * probe.num_queries() + at.query) * dim_),
        keys_(probe.keys.data_ptr<Scalar>() +
              (at.sequence * probe.heads() + at.head) * probe.num_keys() * probe.keys.size(3)),
        position_(at.query),
        scale_(probe.scale),
        slope_(probe.recency.defined() ? static_cast<double>(probe.recency.data_ptr<Scalar>()[at.head]) : 0.0) {
    if (probe.relative == RelativePosition::none || !probe.relative_key.defined()) return;
    max_offset_ = (probe.relative_key.size(0) - 1) / 2;
    for (std::int64_t row = 0; row < probe.relative_key.size(0); ++row) {
      by_offset_.push_back(dot(query_, probe.relative_key.data_ptr<Scalar>() + row * dim_, dim_));
    }
  }

  double with_key(std::int64_t key) const { return dot(query_, keys_ + key * dim_, dim_); }
  double with_offset(std::int64_t offset) const {
    if (by_offset_.empty()) return 0.0;
    return by_offset_[static_cast<std::size_t>(max_offset_ + std::clamp(offset, -max_offset_, max_offset_))];
  }
  double logit(std::int64_t key, double relative) const {
    return scale_ * (with_key(key) + relative) - slope_ * static_cast<double>(position_ - key);
  }

 private:
  std::int64_t dim_;
  const Scalar* query_;
  const Scalar* keys_;
  std::int64_t position_;
  double scale_, slope_;
  std::int64_t max_offset_ = 0;
  std::vector<double> by_offset_;
};

// Calls a generic function with the products in the type of the probe's vectors.
template <class Function>
auto with_products(const GroupProbe& probe, const ProbedQuery& at, const Function& function) {
  check_place(probe, at);
  if (probe.queries.scalar_type() == at::kDouble) return function(QueryProducts<double>(probe, at));
  return function(QueryProducts<float>(probe, at));
}

// What a query reads in one of its groups.
struct ReadKeys {
  std::vector<std::int32_t> keys;
  std::vector<double> values;  // logits, then weights
};

// A query, one of its groups, and the view that it has there.
struct Membership {
  std::int64_t query, group, view;
};

template <class Products>
ReadKeys read_group(const GroupProbe& probe, const Products& products, const PlanViews& views,
                    const Membership& membership) {
  const auto& [query, group, number] = membership;
  const Plan& plan = probe.plan;
  const QueryView& view = views.views[static_cast<std::size_t>(number)];
  const auto* positions = plan.key_order.data_ptr<std::int32_t>() + group_range(plan, group).k_begin;
  ReadKeys read;
  for (std::int32_t rank = view.key_from; rank < view.key_to; ++rank) {
    if (!views.counts(number, rank)) continue;
    const std::int32_t key = positions[rank];
    // The query's own place counts the keys up to it, so its own rank is one less.
    const std::int64_t offset = probe.relative == RelativePosition::rank ? rank - (view.place - 1) : key - query;
    read.keys.push_back(key);
    read.values.push_back(products.logit(key, products.with_offset(offset)));
  }
  return read;
}

// Logits become weights that sum to `total`, in one softmax over all of these groups.
void softmax(std::span<ReadKeys> groups, double total) {
  double largest = -std::numeric_limits<double>::infinity();
  for (const ReadKeys& group : groups) {
    for (const double logit : group.values) largest = std::max(largest, logit);
  }
  double sum = 0.0;
  for (ReadKeys& group : groups) {
    for (double& value : group.values) sum += value = std::exp(value - largest);
  }
  for (ReadKeys& group : groups) {
    for (double& value : group.values) value *= total / sum;
  }
}

// All groups' keys in one ascending list, weights of the same key added.
AttentionRow merge_keys(const std::vector<ReadKeys>& groups) {
  AttentionRow row;
  if (groups.size() == 1) return {groups[0].keys, groups[0].values};
  std::vector<std::pair<std::int32_t, double>> pairs;
  for (const ReadKeys& group : groups) {
    for (std::size_t i = 0; i < group.keys.size(); ++i) pairs.emplace_back(group.keys[i], group.values[i]);
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [key, weight] : pairs) {
    if (row.keys.empty() || row.keys.back() != key) {
      row.keys.push_back(key);
      row.weights.push_back(0.0);
    }
    row.weights.back() += weight;
  }
  return row;
}

template <class Products>
AttentionRow row_of(const GroupProbe& probe, const Products& products, const ProbedQuery& at) {
  const Plan& plan = probe.plan;
  const auto views = shared_views(plan);
  const std::int64_t row = (at.sequence * plan.heads + at.head) * plan.num_queries + at.query;
  const auto* offsets = plan.query_index.offsets.data_ptr<std::int64_t>();
  std::vector<ReadKeys> groups;
  for (std::int64_t entry = offsets[row]; entry < offsets[row + 1]; ++entry) {
    const std::int64_t group = plan.query_index.group.data_ptr<std::int64_t>()[entry];
    const std::int64_t view =
        views->group_offsets[static_cast<std::size_t>(group)] + plan.query_index.rank.data_ptr<std::int32_t>()[entry];
    ReadKeys read = read_group(probe, products, *views, {at.query, group, view});
    if (!read.keys.empty()) groups.push_back(std::move(read));
  }
  if (probe.merge == Merge::lse) {
    softmax(groups, 1.0);
  } else {
    for (ReadKeys& group : groups) softmax({&group, 1}, 1.0 / (static_cast<double>(groups.size()) + probe.merge_eps));
  }
  return merge_keys(groups);
}

}  // namespace

at::Tensor probe_vectors(const at::Tensor& vectors) {
  return vectors.defined() ? vectors.detach().to(at::kCPU).contiguous() : vectors;
}

AttentionRow attention_row(const GroupProbe& probe, std::int64_t sequence, std::int64_t head, std::int64_t query) {
  const ProbedQuery at{.sequence = sequence, .head = head, .query = query};
  return with_products(probe, at, [&](const auto& products) { return row_of(probe, products, at); });
}

std::vector<double> inner_products(const GroupProbe& probe, const ProbedQuery& at, std::span<const std::int32_t> keys) {
  return with_products(probe, at, [&](const auto& products) {
    std::vector<double> values;
    values.reserve(keys.size());
    for (const std::int32_t key : keys) values.push_back(products.with_key(key));
    return values;
  });
}

std::vector<double> dense_logits(const GroupProbe& probe, const ProbedQuery& at, std::span<const std::int32_t> keys) {
  const bool with_table = probe.relative == RelativePosition::true_offset;
  return with_products(probe, at, [&](const auto& products) {
    std::vector<double> values;
    values.reserve(keys.size());
    for (const std::int32_t key : keys) {
      values.push_back(products.logit(key, with_table ? products.with_offset(key - at.query) : 0.0));
    }
    return values;
  });
}

}  // namespace routing
