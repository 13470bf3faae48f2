#include "routing/distributed/gathered_rows.h"

#include "routing/data/batches.h"

#include <utility>
#include <vector>

namespace routing {

std::map<std::string, at::Tensor> gathered_rows(RankGroup& ranks, const std::map<std::string, at::Tensor>& mine,
                                                std::int64_t rows) {
  if (ranks.size() == 1) return mine;
  std::map<std::string, at::Tensor> all;
  for (const auto& [name, tensor] : mine) {
    std::vector<std::int64_t> shape = tensor.sizes().vec();
    shape.front() = rows;
    const at::Tensor whole = at::empty(shape, tensor.options());
    for (int rank = 0; rank < ranks.size(); ++rank) {
      const RowRange of_rank = rows_of_rank(rows, rank, ranks.size());
      const at::Tensor part = whole.narrow(0, of_rank.first, of_rank.count);
      if (rank == ranks.rank()) part.copy_(tensor);
      ranks.broadcast(part, rank);
    }
    all.emplace(name, whole);
  }
  return all;
}

}  // namespace routing
