#include "routing/attention/routing/kmeans.h"

#include "routing/core/error.h"

#include <algorithm>
#include <limits>

namespace routing {
namespace {

double squared_distance(const std::vector<float>& a, const std::vector<float>& b) {
  double total = 0.0;
  for (std::size_t d = 0; d < a.size(); ++d) {
    const double difference = static_cast<double>(a[d]) - b[d];
    total += difference * difference;
  }
  return total;
}

// k-means++.
Vectors spread_starts(const Vectors& vectors, std::size_t clusters, RandomStream& stream) {
  Vectors starts{vectors[stream.below(static_cast<std::uint32_t>(vectors.size()))]};
  std::vector<double> distance(vectors.size(), std::numeric_limits<double>::infinity());
  while (starts.size() < clusters) {
    double total = 0.0;
    for (std::size_t i = 0; i < vectors.size(); ++i) {
      distance[i] = std::min(distance[i], squared_distance(vectors[i], starts.back()));
      total += distance[i];
    }
    double left = stream.uniform() * total;
    std::size_t chosen = 0;
    while (chosen + 1 < vectors.size() && left >= distance[chosen]) left -= distance[chosen++];
    starts.push_back(vectors[chosen]);
  }
  return starts;
}

}  // namespace

double dot_product(const float* first, const std::vector<float>& second) {
  double total = 0.0;
  for (std::size_t d = 0; d < second.size(); ++d) total += static_cast<double>(first[d]) * second[d];
  return total;
}

Vectors kmeans(const Vectors& vectors, std::int64_t clusters, std::int64_t iterations, RandomStream stream) {
  require<InputError>(!vectors.empty(), "kmeans: no vectors to start from");
  const auto k = static_cast<std::size_t>(clusters);
  const std::size_t dim = vectors.front().size();
  Vectors means = spread_starts(vectors, k, stream);
  std::vector<double> half_square(k);
  for (std::int64_t iteration = 0; iteration < iterations; ++iteration) {
    for (std::size_t c = 0; c < k; ++c) half_square[c] = dot_product(means[c].data(), means[c]) / 2.0;
    std::vector<std::vector<double>> sums(k, std::vector<double>(dim, 0.0));
    std::vector<double> counts(k, 0.0);
    for (const auto& vector : vectors) {
      std::size_t best = 0;
      double best_score = -std::numeric_limits<double>::infinity();
      for (std::size_t c = 0; c < k; ++c) {
        // |x - m|^2 is smallest where x.m - |m|^2 / 2 is largest.
        const double score = dot_product(means[c].data(), vector) - half_square[c];
        if (score > best_score) {
          best = c;
          best_score = score;
        }
      }
      counts[best] += 1.0;
      for (std::size_t d = 0; d < dim; ++d) sums[best][d] += vector[d];
    }
    for (std::size_t c = 0; c < k; ++c) {
      if (counts[c] == 0.0) continue;
      for (std::size_t d = 0; d < dim; ++d) means[c][d] = static_cast<float>(sums[c][d] / counts[c]);
    }
  }
  return means;
}

}  // namespace routing
