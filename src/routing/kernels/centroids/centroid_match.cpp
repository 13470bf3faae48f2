#include "routing/kernels/centroids/centroid_match.h"

#include "routing/kernels/centroids/centroid_match_loops.h"
#include "routing/kernels/dispatch/isa.h"

namespace routing::kernels {
namespace {

MatchLoops loops() {
#if defined(__x86_64__)
  const Isa isa = active_isa();
  if (includes(isa, Isa::avx512)) return match_loops_avx512();
  if (includes(isa, Isa::avx2)) return match_loops_avx2();
#endif
  return match_loops_generic();
}

}  // namespace

ScoreBlock::ScoreBlock(std::int64_t clusters, std::int64_t dim)
    : columns(static_cast<std::size_t>(dim * kBlockTokens)),
      scores(static_cast<std::size_t>(clusters * kBlockTokens)),
      passing(static_cast<std::size_t>(words_of(clusters) * kBlockTokens)),
      above(static_cast<std::size_t>(clusters)) {}

void score_tokens(const CentroidRows& centroids, const TokenBlock& tokens, ScoreBlock& block) {
  loops().score(centroids, tokens, block.columns.data(), block.scores.data());
}

void choose_centroids(const CentroidRows& centroids, ScoreBlock& block) {
  loops().choose(centroids, block.scores.data(), {block.argmax.data(), block.nearest.data(), block.passing.data()});
}

void add_scores(const CentroidRows& centroids, std::int64_t count, const ScoreBlock& block, const ScoreSums& sums) {
  loops().sum(centroids, count, block.scores.data(), sums);
}

void find_scores_above(const CentroidRows& centroids, std::int64_t count, const float* limits, ScoreBlock& block) {
  loops().above(centroids.clusters, block.scores.data(), limits, block.above.data());
  if (count == kBlockTokens) return;
  const std::uint64_t real = (std::uint64_t{1} << static_cast<unsigned>(count)) - 1;
  for (std::uint64_t& bits : block.above) bits &= real;
}

double squared_distance(const CentroidRows& centroids, const TokenBlock& tokens, const std::int32_t* cluster) {
  return loops().distance(centroids, tokens, cluster);
}

void add_tokens(const TokenBlock& tokens, std::int64_t dim, const std::int32_t* cluster, double* sums) {
  loops().add(tokens, dim, cluster, sums);
}

}  // namespace routing::kernels
