#include "lab/heads/probed_heads.h"

#include "routing/core/random.h"

#include <algorithm>
#include <numeric>

namespace routing {

std::vector<ProbedHead> heads_of(const std::vector<GroupProbe>& layer) {
  std::vector<ProbedHead> heads;
  for (const GroupProbe& probe : layer) {
    for (std::int64_t head = 0; head < probe.heads(); ++head) heads.push_back({&probe, head});
  }
  return heads;
}

std::vector<std::int64_t> sampled_queries(const QuerySample& sample) {
  const std::int64_t all = std::max<std::int64_t>(0, sample.length - sample.first);
  if (sample.count == 0 || sample.count >= all) {
    std::vector<std::int64_t> queries(static_cast<std::size_t>(all));
    std::iota(queries.begin(), queries.end(), sample.first);
    return queries;
  }
  RandomStream stream(sample.seed, "probed queries", {static_cast<std::uint64_t>(sample.sequence)});
  std::vector<std::int64_t> queries;
  for (const std::int32_t place :
       sorted_sample(stream, static_cast<std::int32_t>(all), static_cast<std::int32_t>(sample.count))) {
    queries.push_back(sample.first + place);
  }
  return queries;
}

}  // namespace routing
