#include "routing/attention/routing_selection.h"

#include "routing/kernels/centroid_scores.h"

#include <algorithm>
#include <numeric>

namespace routing {
namespace {

constexpr std::size_t kTokensPerBlock = 64;

void add_each(std::vector<std::int64_t>& into, const std::vector<std::int64_t>& from) {
  std::transform(into.begin(), into.end(), from.begin(), into.begin(), std::plus<>());
}
void add_each(std::vector<double>& into, const std::vector<double>& from) {
  std::transform(into.begin(), into.end(), from.begin(), into.begin(), std::plus<>());
}

// The `capacity` best (score, position) pairs seen so far. Keeps up to twice as many and halves them when full, so that
// a stream of n costs O(n).
class BestTokens {
 public:
  explicit BestTokens(std::size_t capacity) : capacity_(capacity) {}

  void offer(float score, std::int32_t position) {
    kept_.push_back({score, position});
    if (kept_.size() == 2 * capacity_) halve();
  }

  std::vector<std::int32_t> positions() {
    if (kept_.size() > capacity_) halve();
    std::vector<std::int32_t> sorted;
    sorted.reserve(kept_.size());
    for (const Offer& offer : kept_) sorted.push_back(offer.position);
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  }

 private:
  struct Offer {
    float score;
    std::int32_t position;
  };
  // A total order: the result does not depend on when the halving happens.
  void halve() {
    std::nth_element(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(capacity_), kept_.end(),
                     [](const Offer& a, const Offer& b) {
                       return a.score != b.score ? a.score > b.score : a.position < b.position;
                     });
    kept_.resize(capacity_);
  }
  std::size_t capacity_;
  std::vector<Offer> kept_;
};

// The work of one unit, token after token.
class Selector {
 public:
  Selector(const CentroidView& view, const RoutingPattern& pattern, std::size_t tokens)
      : view_(view), pattern_(pattern), clusters_(static_cast<std::size_t>(view.clusters)) {
    result_.members.resize(clusters_);
    result_.argmax.assign(tokens, -1);
    result_.totals = ClusterTotals(view.clusters, view.dim);
    if (pattern.selection == RoutingSelection::balanced) {
      // No more places than tokens, however large the window.
      const auto window = std::min(static_cast<std::size_t>(pattern.window), std::max<std::size_t>(1, tokens));
      best_.assign(clusters_, BestTokens(window));
    }
  }

  void visit(std::int32_t position, const float* vector, const float* scores) {
    ClusterTotals& totals = result_.totals;
    std::size_t argmax = 0;
    std::size_t nearest = 0;
    chosen_.clear();
    for (std::size_t c = 0; c < clusters_; ++c) {
      const float score = scores[c];
      if (score > scores[argmax]) argmax = c;
      if (score - view_.tau[c] > scores[nearest] - view_.tau[nearest]) nearest = c;
      if (score >= view_.tau[c]) {
        ++totals.passing[c];
        chosen_.push_back(c);
      }
      totals.score_sum[c] += score;
      totals.score_square_sum[c] += static_cast<double>(score) * score;
    }
    ++totals.tokens;
    ++totals.argmax[argmax];
    ++totals.nearest[nearest];
    result_.argmax[static_cast<std::size_t>(position)] = static_cast<std::int32_t>(argmax);
    totals.squared_distance += squared_distance(vector, argmax);
    if (pattern_.update_from == UpdateFrom::argmax) move(argmax, vector);
    if (pattern_.update_from == UpdateFrom::nearest) move(nearest, vector);
    join(position, scores, argmax, nearest);
  }

  UnitSelection finish(std::span<const float> vectors, std::span<const std::int32_t> valid) {
    ClusterTotals& totals = result_.totals;
    std::vector<std::int32_t> memberships(result_.argmax.size(), 0);
    for (std::size_t c = 0; c < clusters_; ++c) {
      if (!best_.empty()) result_.members[c] = best_[c].positions();
      totals.members[c] = static_cast<std::int64_t>(result_.members[c].size());
      for (const std::int32_t position : result_.members[c]) {
        ++memberships[static_cast<std::size_t>(position)];
        if (pattern_.update_from == UpdateFrom::members) move(c, vectors.data() + position * view_.dim);
      }
    }
    for (const std::int32_t position : valid) {
      const std::int32_t count = memberships[static_cast<std::size_t>(position)];
      totals.unrouted += count == 0 ? 1 : 0;
      totals.overlapping += count > 1 ? 1 : 0;
    }
    return std::move(result_);
  }

 private:
  void join(std::int32_t position, const float* scores, std::size_t argmax, std::size_t nearest) {
    if (pattern_.selection == RoutingSelection::balanced) {
      for (std::size_t c = 0; c < clusters_; ++c) best_[c].offer(scores[c], position);
      return;
    }
    if (pattern_.selection == RoutingSelection::nearest) {
      chosen_.assign(1, nearest);
    } else if (chosen_.empty()) {
      chosen_.assign(1, argmax);
    } else if (const auto most = static_cast<std::size_t>(pattern_.max_memberships); chosen_.size() > most) {
      // The lower number wins a tie, so that the set is defined; its order does not matter below.
      const auto better = [&](std::size_t a, std::size_t b) {
        const float margin_a = scores[a] - view_.tau[a];
        const float margin_b = scores[b] - view_.tau[b];
        return margin_a != margin_b ? margin_a > margin_b : a < b;
      };
      std::nth_element(chosen_.begin(), chosen_.begin() + static_cast<std::ptrdiff_t>(most), chosen_.end(), better);
      chosen_.resize(most);
    }
    for (const std::size_t c : chosen_) result_.members[c].push_back(position);
  }

  void move(std::size_t cluster, const float* vector) {
    ++result_.totals.moving[cluster];
    double* sum = result_.totals.moving_sum.data() + static_cast<std::int64_t>(cluster) * view_.dim;
    for (std::int64_t d = 0; d < view_.dim; ++d) sum[d] += vector[d];
  }

  double squared_distance(const float* vector, std::size_t cluster) const {
    const float* centroid = view_.centroids + static_cast<std::int64_t>(cluster) * view_.dim;
    double total = 0.0;
    for (std::int64_t d = 0; d < view_.dim; ++d) {
      const double difference = static_cast<double>(vector[d]) - centroid[d];
      total += difference * difference;
    }
    return total;
  }

  // NOLINTBEGIN(cppcoreguidelines-avoid-const-or-ref-data-members): lives no longer than select_members.
  const CentroidView& view_;
  const RoutingPattern& pattern_;
  // NOLINTEND(cppcoreguidelines-avoid-const-or-ref-data-members)
  std::size_t clusters_;
  UnitSelection result_;
  std::vector<BestTokens> best_;
  std::vector<std::size_t> chosen_;
};

}  // namespace

ClusterTotals::ClusterTotals(std::int64_t clusters, std::int64_t dim) {
  const auto size = static_cast<std::size_t>(clusters);
  for (auto* counts : {&argmax, &nearest, &passing, &members, &moving}) counts->assign(size, 0);
  score_sum.assign(size, 0.0);
  score_square_sum.assign(size, 0.0);
  moving_sum.assign(size * static_cast<std::size_t>(dim), 0.0);
}

void ClusterTotals::add(const ClusterTotals& other) {
  if (other.argmax.empty()) return;
  if (argmax.empty()) {
    *this = other;
    return;
  }
  tokens += other.tokens;
  unrouted += other.unrouted;
  overlapping += other.overlapping;
  squared_distance += other.squared_distance;
  add_each(argmax, other.argmax);
  add_each(nearest, other.nearest);
  add_each(passing, other.passing);
  add_each(members, other.members);
  add_each(score_sum, other.score_sum);
  add_each(score_square_sum, other.score_square_sum);
  add_each(moving, other.moving);
  add_each(moving_sum, other.moving_sum);
}

UnitSelection select_members(std::span<const float> vectors, std::span<const std::int32_t> valid,
                             const CentroidView& view, const RoutingPattern& pattern) {
  const auto dim = static_cast<std::size_t>(view.dim);
  const auto clusters = static_cast<std::size_t>(view.clusters);
  std::vector<float> columns(dim * clusters);
  for (std::size_t c = 0; c < clusters; ++c) {
    for (std::size_t d = 0; d < dim; ++d) columns[d * clusters + c] = view.centroids[c * dim + d];
  }
  Selector selector(view, pattern, dim == 0 ? 0 : vectors.size() / dim);
  std::vector<float> block(kTokensPerBlock * dim);
  std::vector<float> scores(kTokensPerBlock * clusters);
  for (std::size_t first = 0; first < valid.size(); first += kTokensPerBlock) {
    const std::size_t count = std::min(kTokensPerBlock, valid.size() - first);
    for (std::size_t t = 0; t < count; ++t) {
      const auto row = vectors.subspan(static_cast<std::size_t>(valid[first + t]) * dim, dim);
      std::copy(row.begin(), row.end(), block.begin() + static_cast<std::ptrdiff_t>(t * dim));
    }
    kernels::centroid_scores(block.data(), columns.data(), {static_cast<std::int64_t>(count), view.dim, view.clusters},
                             scores.data());
    for (std::size_t t = 0; t < count; ++t) {
      selector.visit(valid[first + t], block.data() + t * dim, scores.data() + t * clusters);
    }
  }
  return selector.finish(vectors, valid);
}

}  // namespace routing
