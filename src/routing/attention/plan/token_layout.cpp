#include "routing/attention/plan/token_layout.h"

#include "routing/core/error.h"

#include <limits>

namespace routing {
namespace {

std::vector<std::vector<std::int32_t>> valid_positions(const char* name, const at::Tensor& valid, std::int64_t batch,
                                                       std::int64_t tokens) {
  require<InputError>(tokens <= std::numeric_limits<std::int32_t>::max(), "a sequence of ", tokens,
                      " tokens is longer than positions can count (", std::numeric_limits<std::int32_t>::max(), ")");
  at::Tensor mask;
  if (valid.defined()) {
    require<InputError>(
        valid.scalar_type() == at::kBool && valid.dim() == 2 && valid.size(0) == batch && valid.size(1) == tokens, name,
        " is ", valid.scalar_type(), " ", valid.sizes(), ", but must be Bool [", batch, ", ", tokens,
        "], true for real tokens");
    mask = valid.cpu().contiguous();
  }
  std::vector<std::vector<std::int32_t>> positions(static_cast<std::size_t>(batch));
  for (std::int64_t sequence = 0; sequence < batch; ++sequence) {
    auto& of_sequence = positions[static_cast<std::size_t>(sequence)];
    of_sequence.reserve(static_cast<std::size_t>(tokens));
    for (std::int64_t token = 0; token < tokens; ++token) {
      if (!mask.defined() || mask.data_ptr<bool>()[sequence * tokens + token]) {
        of_sequence.push_back(static_cast<std::int32_t>(token));
      }
    }
  }
  return positions;
}

}  // namespace

TokenLayout self_layout(std::int64_t batch, std::int64_t heads, std::int64_t tokens, const at::Tensor& valid) {
  TokenLayout layout{.batch = batch, .heads = heads, .num_queries = tokens, .num_keys = tokens};
  layout.valid_queries = valid_positions("the padding mask", valid, batch, tokens);
  layout.valid_keys = layout.valid_queries;
  return layout;
}

TokenLayout cross_layout(const CrossSizes& sizes, const at::Tensor& query_valid, const at::Tensor& key_valid) {
  TokenLayout layout{.batch = sizes.batch,
                     .heads = sizes.heads,
                     .num_queries = sizes.num_queries,
                     .num_keys = sizes.num_keys,
                     .cross = true};
  layout.valid_queries =
      valid_positions("the padding mask of the queries", query_valid, sizes.batch, sizes.num_queries);
  layout.valid_keys = valid_positions("the padding mask of the keys", key_valid, sizes.batch, sizes.num_keys);
  return layout;
}

}  // namespace routing
