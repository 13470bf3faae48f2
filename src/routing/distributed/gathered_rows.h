// Tensors whose rows are shared out over ranks, as one.
#pragma once

#include "routing/distributed/group/rank_group.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <string>

namespace routing {

// Tensors of the same names on all ranks, which must all call: each rank has the rows of rows_of_rank(). All get all
// rows, bit for bit.
std::map<std::string, at::Tensor> gathered_rows(RankGroup& ranks, const std::map<std::string, at::Tensor>& mine,
                                                std::int64_t rows);

}  // namespace routing
