// How well does each token match each centroid, and which does it choose?
//
//   s[c][t] = sum over d of centroid[c][d] * token[t][d]
//
// The work comes in blocks of up to 64 tokens, so that n x k scores are never in memory whole. A token lies in a lane
// of a vector register: each score is one chain of multiply-adds over d in order, whatever else is in the block. So a
// token chooses the same clusters in a batch, in a prefix and one at a time.
//
// Layout     rows and centroids row-major, float32; scores [clusters, kBlockTokens], one row per cluster
// Overlap    outputs must not overlap inputs
// Sums       of tokens in float32 inside a block, lane by lane, then in float64 block after block
// Threads    single-threaded; callers split over blocks
// Level      chosen by active_isa(); levels may differ in the last bits
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace routing::kernels {

inline constexpr std::int64_t kBlockTokens = 64;

// One head's centroids and thresholds.
struct CentroidRows {
  const float* rows = nullptr;  // [clusters, dim]
  const float* tau = nullptr;   // [clusters]
  std::int64_t clusters = 0;
  std::int64_t dim = 0;
};

// Token t < count of the block is row positions[t].
struct TokenBlock {
  const float* rows = nullptr;
  const std::int32_t* positions = nullptr;
  std::int64_t count = 0;      // at most kBlockTokens
  std::int64_t following = 0;  // so many more positions stand behind these; score_tokens fetches their rows ahead
};

// The memory of one block, to be used again for the next; numbers of tokens past `count` mean nothing.
struct ScoreBlock {
  ScoreBlock(std::int64_t clusters, std::int64_t dim);

  std::vector<float> columns;  // [dim, kBlockTokens]: the tokens, transposed
  std::vector<float> scores;   // [clusters, kBlockTokens]
  std::array<std::int32_t, kBlockTokens> argmax{}, nearest{};
  std::vector<std::uint32_t> passing;  // [words_of(clusters), kBlockTokens]: bit c % 32 of word c / 32 is s >= tau_c
  std::vector<std::uint64_t> above;    // [clusters]: bit t
};

// Words of 32 bits that hold a bit for each cluster.
constexpr std::int64_t words_of(std::int64_t clusters) {
  return (clusters + 31) / 32;
}

// Fills block.scores.
void score_tokens(const CentroidRows& centroids, const TokenBlock& tokens, ScoreBlock& block);

// From the scores: argmax (the best s), nearest (the best s - tau; both the lower number on a tie) and passing.
void choose_centroids(const CentroidRows& centroids, ScoreBlock& block);

// Sums over tokens, [clusters] each, added to.
struct ScoreSums {
  double* score = nullptr;
  double* square = nullptr;
  std::int64_t* passing = nullptr;  // tokens with s >= tau
};
// Of the first `count` tokens.
void add_scores(const CentroidRows& centroids, std::int64_t count, const ScoreBlock& block, const ScoreSums& sums);

// Fills block.above: bit t of above[c] says s[c][t] > limits[c], t < count.
void find_scores_above(const CentroidRows& centroids, std::int64_t count, const float* limits, ScoreBlock& block);

// The sum over the block's tokens of |token - centroid cluster[t]|^2.
double squared_distance(const CentroidRows& centroids, const TokenBlock& tokens, const std::int32_t* cluster);

// sums[cluster[t]] += token t, for sums [clusters, dim].
void add_tokens(const TokenBlock& tokens, std::int64_t dim, const std::int32_t* cluster, double* sums);

}  // namespace routing::kernels
