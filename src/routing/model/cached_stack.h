// What both kinds of models do to read sequences piece by piece: for their sources only.
#pragma once

#include "routing/model/block.h"
#include "routing/model/model_cache.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace routing {

// The first reason of a layer against a cache; empty if there is none.
std::string reason_against_cache(std::span<const Block> stack);
ModelCache make_cache(std::span<const Block> stack);

// What new tokens read and where they stand.
struct CachedInputs {
  at::Tensor ids;                       // [sequences, tokens]
  std::vector<std::int64_t> positions;  // of each, sequence after sequence
};
// `id_at` makes the id that is read at a position of the token before it. Throws an InputError that begins with `where`
// unless `previous` is int64 with a row for each of the sequences.
CachedInputs cached_inputs(const std::string& where, const at::Tensor& previous, const ModelCache& cache,
                           std::span<const std::int64_t> sequences,
                           const std::function<std::int64_t(std::int64_t position, std::int64_t before)>& id_at);

at::Tensor forward_cached(std::span<const Block> stack, at::Tensor x, ModelCache& cache,
                          std::span<const std::int64_t> sequences, const ForwardContext& context);

}  // namespace routing
