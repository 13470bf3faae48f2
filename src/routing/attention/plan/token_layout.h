// Which tokens are there? The sizes a plan is made for, and the valid positions of each sequence.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

namespace routing {

struct TokenLayout {
  std::int64_t batch = 0;
  std::int64_t heads = 0;
  std::int64_t num_queries = 0;
  std::int64_t num_keys = 0;
  bool cross = false;
  // Ascending valid positions of each sequence; padding never gets further than here. For self-attention both are
  // equal.
  std::vector<std::vector<std::int32_t>> valid_queries = {};
  std::vector<std::vector<std::int32_t>> valid_keys = {};
};

// `valid` is bool [batch, tokens], true for real tokens, on any device; undefined means that all are real.
TokenLayout self_layout(std::int64_t batch, std::int64_t heads, std::int64_t tokens, const at::Tensor& valid = {});

struct CrossSizes {
  std::int64_t batch, heads, num_queries, num_keys;
};
TokenLayout cross_layout(const CrossSizes& sizes, const at::Tensor& query_valid = {}, const at::Tensor& key_valid = {});

}  // namespace routing
