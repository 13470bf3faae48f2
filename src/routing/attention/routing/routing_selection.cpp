#include "routing/attention/routing/routing_selection.h"

#include "routing/kernels/centroids/centroid_match.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

namespace routing {
namespace {

void add_each(std::vector<std::int64_t>& into, const std::vector<std::int64_t>& from) {
  std::transform(into.begin(), into.end(), from.begin(), into.begin(), std::plus<>());
}
void add_each(std::vector<double>& into, const std::vector<double>& from) {
  std::transform(into.begin(), into.end(), from.begin(), into.begin(), std::plus<>());
}

// A number that orders (score, position) pairs: the better score first, of equal ones the earlier position. Greater is
// better; both zeros are one score.
std::uint64_t rank_of(float score, std::int32_t position) {
  const auto bits = std::bit_cast<std::uint32_t>(score + 0.0F);
  const std::uint32_t ordered = (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
  return (std::uint64_t{ordered} << 32U) | ~static_cast<std::uint32_t>(position);
}

// The `capacity` best tokens of each centroid. Keeps up to twice as many and halves them when full, so that a stream of
// n costs O(n); after the first halving only scores above the worst one kept can enter, which leaves few.
class BestTokens {
 public:
  BestTokens(std::size_t clusters, std::size_t capacity)
      : capacity_(capacity), kept_(clusters), limits_(clusters, -std::numeric_limits<float>::infinity()) {}

  void offer(const kernels::CentroidRows& centroids, const kernels::TokenBlock& tokens, kernels::ScoreBlock& block) {
    kernels::find_scores_above(centroids, tokens.count, limits_.data(), block);
    for (std::size_t c = 0; c < kept_.size(); ++c) {
      const float* scores = block.scores.data() + c * kernels::kBlockTokens;
      if (!full(c)) {
        for (std::int64_t t = 0; t < tokens.count; ++t) keep(c, scores[t], tokens.positions[t]);
        continue;
      }
      for (std::uint64_t bits = block.above[c]; bits != 0; bits &= bits - 1) {
        const int t = std::countr_zero(bits);
        keep(c, scores[t], tokens.positions[t]);
      }
    }
  }

  std::vector<std::int32_t> positions(std::size_t c) {
    if (kept_[c].size() > capacity_) halve(c);
    std::vector<std::int32_t> sorted;
    sorted.reserve(kept_[c].size());
    for (const std::uint64_t rank : kept_[c]) {
      sorted.push_back(static_cast<std::int32_t>(~static_cast<std::uint32_t>(rank)));
    }
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  }

 private:
  // Has a centroid seen enough tokens for its limit to mean something?
  bool full(std::size_t c) const { return limits_[c] > -std::numeric_limits<float>::infinity(); }
  void keep(std::size_t c, float score, std::int32_t position) {
    if (kept_[c].empty()) kept_[c].reserve(2 * capacity_);
    kept_[c].push_back(rank_of(score, position));
    if (kept_[c].size() == 2 * capacity_) halve(c);
  }
  // A total order: the result does not depend on when the halving happens.
  void halve(std::size_t c) {
    auto& kept = kept_[c];
    std::nth_element(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(capacity_ - 1), kept.end(),
                     std::greater<>());
    kept.resize(capacity_);
    const auto worst = static_cast<std::uint32_t>(kept.back() >> 32U);
    limits_[c] = std::bit_cast<float>((worst & 0x80000000U) != 0 ? worst & 0x7FFFFFFFU : ~worst);
  }
  std::size_t capacity_;
  std::vector<std::vector<std::uint64_t>> kept_;
  std::vector<float> limits_;
};

// Of the passed clusters from `first` on, the `most` with the best margins; the lower number wins a tie.
void keep_best(const kernels::ScoreBlock& block, const float* tau, std::size_t t, std::span<std::int32_t> passed,
               std::size_t most) {
  const auto margin = [&](std::int32_t c) {
    return block.scores[static_cast<std::size_t>(c) * kernels::kBlockTokens + t] - tau[c];
  };
  const auto better = [&](std::int32_t a, std::int32_t b) {
    const float margin_a = margin(a);
    const float margin_b = margin(b);
    return margin_a != margin_b ? margin_a > margin_b : a < b;
  };
  const auto last = passed.begin() + static_cast<std::ptrdiff_t>(most);
  std::nth_element(passed.begin(), last, passed.end(), better);
  std::sort(passed.begin(), last);
}

// Appends the clusters of token t of a block that was scored and chosen for, ascending. Says whether it fell back,
// having passed no threshold.
bool append_clusters(const kernels::ScoreBlock& block, const CentroidView& view, const RoutingPattern& pattern,
                     std::size_t t, std::vector<std::int32_t>& joined) {
  const std::size_t before = joined.size();
  if (pattern.selection == RoutingSelection::nearest) {
    joined.push_back(block.nearest[t]);
    return false;
  }
  for (std::size_t word = 0; word * kernels::kBlockTokens < block.passing.size(); ++word) {
    for (std::uint32_t bits = block.passing[word * kernels::kBlockTokens + t]; bits != 0; bits &= bits - 1) {
      joined.push_back(static_cast<std::int32_t>(word * 32) + std::countr_zero(bits));
    }
  }
  const auto most = static_cast<std::size_t>(pattern.max_memberships);
  if (joined.size() == before) {
    joined.push_back(block.argmax[t]);
    return true;
  }
  if (joined.size() - before > most) {
    keep_best(block, view.tau, t, std::span(joined).subspan(before), most);
    joined.resize(before + most);
  }
  return false;
}

// For tokens that come a few at a time, which would take longer to make and clear it than to choose.
kernels::ScoreBlock& block_of_thread(std::int64_t clusters, std::int64_t dim) {
  thread_local std::optional<kernels::ScoreBlock> block;
  const auto is_of = [](const std::vector<float>& numbers, std::int64_t rows) {
    return static_cast<std::int64_t>(numbers.size()) == rows * kernels::kBlockTokens;
  };
  if (!block || !is_of(block->scores, clusters) || !is_of(block->columns, dim)) block.emplace(clusters, dim);
  return *block;
}

// The work of one unit, block after block.
class Selector {
 public:
  Selector(std::span<const float> vectors, std::span<const std::int32_t> valid, const CentroidView& view,
           const RoutingPattern& pattern)
      : vectors_(vectors),
        valid_(valid),
        pattern_(pattern),
        view_(view),
        centroids_{view.centroids, view.tau, view.clusters, view.dim},
        block_(view.clusters, view.dim) {
    const std::size_t tokens = view.dim == 0 ? 0 : vectors.size() / static_cast<std::size_t>(view.dim);
    result_.members.resize(static_cast<std::size_t>(view.clusters));
    result_.committed.assign(tokens, -1);
    result_.totals = ClusterTotals(view.clusters, view.dim);
    result_.totals.tokens = static_cast<std::int64_t>(valid.size());
    if (pattern.selection == RoutingSelection::balanced) {
      // No more places than tokens, however large the window.
      const auto window = std::min(static_cast<std::size_t>(pattern.window), std::max<std::size_t>(1, tokens));
      best_.emplace(static_cast<std::size_t>(view.clusters), window);
    } else {
      joined_.reserve(valid.size());
      memberships_.reserve(valid.size());
    }
  }

  UnitSelection select() {
    for (std::size_t first = 0; first < valid_.size(); first += kernels::kBlockTokens) {
      const std::size_t count = std::min<std::size_t>(kernels::kBlockTokens, valid_.size() - first);
      visit({.rows = vectors_.data(),
             .positions = valid_.data() + first,
             .count = static_cast<std::int64_t>(count),
             .following = static_cast<std::int64_t>(valid_.size() - first - count)});
    }
    if (best_) {
      take_best();
    } else {
      group_joined();
    }
    if (pattern_.update_from == UpdateFrom::members) move_members();
    return std::move(result_);
  }

 private:
  void visit(const kernels::TokenBlock& tokens) {
    ClusterTotals& totals = result_.totals;
    kernels::score_tokens(centroids_, tokens, block_);
    kernels::choose_centroids(centroids_, block_);
    kernels::add_scores(centroids_, tokens.count, block_,
                        {totals.score_sum.data(), totals.score_square_sum.data(), totals.passing.data()});
    for (std::size_t t = 0; t < static_cast<std::size_t>(tokens.count); ++t) {
      ++totals.argmax[static_cast<std::size_t>(block_.argmax[t])];
      ++totals.nearest[static_cast<std::size_t>(block_.nearest[t])];
      result_.committed[static_cast<std::size_t>(tokens.positions[t])] = block_.argmax[t];
    }
    totals.squared_distance += kernels::squared_distance(centroids_, tokens, block_.argmax.data());
    if (pattern_.update_from == UpdateFrom::argmax) move(tokens, block_.argmax.data());
    if (pattern_.update_from == UpdateFrom::nearest) move(tokens, block_.nearest.data());
    if (best_) {
      best_->offer(centroids_, tokens, block_);
    } else {
      for (std::int64_t t = 0; t < tokens.count; ++t) join(static_cast<std::size_t>(t));
    }
  }

  void join(std::size_t t) {
    const std::size_t before = joined_.size();
    result_.totals.fallback += append_clusters(block_, view_, pattern_, t, joined_) ? 1 : 0;
    memberships_.push_back(static_cast<std::int32_t>(joined_.size() - before));
  }

  // By counting: the tokens came in order, so each cluster's list ascends.
  void group_joined() {
    ClusterTotals& totals = result_.totals;
    for (const std::int32_t c : joined_) ++totals.members[static_cast<std::size_t>(c)];
    std::vector<std::int32_t*> next(result_.members.size());
    for (std::size_t c = 0; c < next.size(); ++c) {
      result_.members[c].resize(static_cast<std::size_t>(totals.members[c]));
      next[c] = result_.members[c].data();
    }
    const std::int32_t* c = joined_.data();
    for (std::size_t t = 0; t < valid_.size(); ++t) {
      totals.overlapping += memberships_[t] > 1 ? 1 : 0;
      for (std::int32_t i = 0; i < memberships_[t]; ++i) *next[static_cast<std::size_t>(*c++)]++ = valid_[t];
    }
  }

  void take_best() {
    ClusterTotals& totals = result_.totals;
    std::vector<std::int32_t> memberships(result_.committed.size(), 0);
    for (std::size_t c = 0; c < result_.members.size(); ++c) {
      result_.members[c] = best_->positions(c);
      totals.members[c] = static_cast<std::int64_t>(result_.members[c].size());
      for (const std::int32_t position : result_.members[c]) ++memberships[static_cast<std::size_t>(position)];
    }
    for (const std::int32_t position : valid_) {
      const std::int32_t count = memberships[static_cast<std::size_t>(position)];
      totals.unrouted += count == 0 ? 1 : 0;
      totals.overlapping += count > 1 ? 1 : 0;
    }
  }

  void move(const kernels::TokenBlock& tokens, const std::int32_t* cluster) {
    for (std::int64_t t = 0; t < tokens.count; ++t) ++result_.totals.moving[static_cast<std::size_t>(cluster[t])];
    kernels::add_tokens(tokens, centroids_.dim, cluster, result_.totals.moving_sum.data());
  }

  void move_members() {
    std::array<std::int32_t, kernels::kBlockTokens> cluster{};
    for (std::size_t c = 0; c < result_.members.size(); ++c) {
      const auto& members = result_.members[c];
      cluster.fill(static_cast<std::int32_t>(c));
      for (std::size_t first = 0; first < members.size(); first += cluster.size()) {
        const std::size_t count = std::min(cluster.size(), members.size() - first);
        move({.rows = vectors_.data(), .positions = members.data() + first, .count = static_cast<std::int64_t>(count)},
             cluster.data());
      }
    }
  }

  std::span<const float> vectors_;
  std::span<const std::int32_t> valid_;
  // NOLINTNEXTLINE(cppcoreguidelines-avoid-const-or-ref-data-members): lives no longer than select_members.
  const RoutingPattern& pattern_;
  CentroidView view_;
  kernels::CentroidRows centroids_;
  kernels::ScoreBlock block_;
  UnitSelection result_;
  std::optional<BestTokens> best_;         // of balanced selection
  std::vector<std::int32_t> joined_;       // of the others: clusters, token after token …
  std::vector<std::int32_t> memberships_;  // … and how many a token has
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
  fallback += other.fallback;
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
  return Selector(vectors, valid, view, pattern).select();
}

TokenLists clusters_of_tokens(std::span<const float> vectors, const CentroidView& view, const RoutingPattern& pattern) {
  std::vector<std::int32_t> rows(vectors.size() / static_cast<std::size_t>(view.dim));
  std::iota(rows.begin(), rows.end(), 0);
  return clusters_of_rows(vectors, rows, view, pattern);
}

TokenLists clusters_of_rows(std::span<const float> vectors, std::span<const std::int32_t> rows,
                            const CentroidView& view, const RoutingPattern& pattern) {
  const kernels::CentroidRows centroids{view.centroids, view.tau, view.clusters, view.dim};
  const auto tokens = static_cast<std::int64_t>(rows.size());
  kernels::ScoreBlock& block = block_of_thread(view.clusters, view.dim);
  TokenLists result;
  result.counts.reserve(rows.size());
  for (std::int64_t first = 0; first < tokens; first += kernels::kBlockTokens) {
    const std::int64_t count = std::min(kernels::kBlockTokens, tokens - first);
    kernels::score_tokens(
        centroids,
        {.rows = vectors.data(), .positions = rows.data() + first, .count = count, .following = tokens - first - count},
        block);
    kernels::choose_centroids(centroids, block);
    for (std::size_t t = 0; t < static_cast<std::size_t>(count); ++t) {
      const std::size_t before = result.lists.size();
      append_clusters(block, view, pattern, t, result.lists);
      result.counts.push_back(static_cast<std::int32_t>(result.lists.size() - before));
    }
  }
  return result;
}

}  // namespace routing
