#include "routing/ops/attend/attention_dropout.h"

#include "routing/core/random.h"

#include <bit>

namespace routing {
namespace {

constexpr std::int64_t kWord = 0xFFFFFFFF;

// A 32-bit word below this is dropped.
std::int64_t drop_below(double probability) {
  return static_cast<std::int64_t>(probability * 0x1.0p32);
}

at::Tensor high_word(const at::Tensor& product) {
  return product.bitwise_right_shift(32).bitwise_and(kWord);
}
at::Tensor low_word(const at::Tensor& product) {
  return product.bitwise_and(kWord);
}

}  // namespace

std::uint64_t dropout_unit_key(std::uint64_t key, std::int64_t sample_id, std::int64_t head) {
  return stream_key(key, "attention dropout",
                    {static_cast<std::uint64_t>(sample_id), static_cast<std::uint64_t>(head)});
}

bool dropout_keeps(std::uint64_t unit_key, std::uint32_t group, std::uint32_t query_position,
                   std::uint32_t key_position, double probability) {
  return philox(unit_key, {key_position, query_position, group, 0})[0] >=
         static_cast<std::uint64_t>(drop_below(probability));
}

// Philox in 64-bit integer tensors: products of two 32-bit words wrap around as unsigned ones do, and only their two
// halves are used.
at::Tensor dropout_factors(const at::Tensor& unit_keys, const at::Tensor& groups, const at::Tensor& query_positions,
                           const at::Tensor& key_positions, double probability, at::ScalarType type) {
  at::Tensor key0 = low_word(unit_keys).view({-1, 1, 1});
  at::Tensor key1 = high_word(unit_keys).view({-1, 1, 1});
  at::Tensor word0 = key_positions.unsqueeze(1);
  at::Tensor word1 = query_positions.unsqueeze(2);
  at::Tensor word2 = groups.view({-1, 1, 1});
  at::Tensor word3 = at::zeros_like(word2);
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const at::Tensor product0 = word0 * std::int64_t{kPhiloxMultiplier0};
    const at::Tensor product1 = word2 * std::int64_t{kPhiloxMultiplier1};
    word0 = high_word(product1).bitwise_xor(word1).bitwise_xor(key0);
    word1 = low_word(product1);
    word2 = high_word(product0).bitwise_xor(word3).bitwise_xor(key1);
    word3 = low_word(product0);
    key0 = (key0 + std::int64_t{kPhiloxWeyl0}).bitwise_and(kWord);
    key1 = (key1 + std::int64_t{kPhiloxWeyl1}).bitwise_and(kWord);
  }
  return (word0 >= drop_below(probability)).to(type) / (1.0 - probability);
}

at::Tensor dropout_factors_by_loops(const at::Tensor& unit_keys, const at::Tensor& groups,
                                    const at::Tensor& query_positions, const at::Tensor& key_positions,
                                    double probability, at::ScalarType type) {
  const auto keys = unit_keys.accessor<std::int64_t, 1>();
  const auto group = groups.accessor<std::int64_t, 1>();
  const auto i = query_positions.accessor<std::int64_t, 2>();
  const auto j = key_positions.accessor<std::int64_t, 2>();
  const auto word = [](std::int64_t number) { return static_cast<std::uint32_t>(number); };
  at::Tensor kept = at::empty({keys.size(0), i.size(1), j.size(1)}, at::kBool);
  bool* next = kept.data_ptr<bool>();
  for (std::int64_t m = 0; m < keys.size(0); ++m) {
    for (std::int64_t query = 0; query < i.size(1); ++query) {
      for (std::int64_t key = 0; key < j.size(1); ++key) {
        *next++ = dropout_keeps(std::bit_cast<std::uint64_t>(keys[m]), word(group[m]), word(i[m][query]),
                                word(j[m][key]), probability);
      }
    }
  }
  return kept.to(type) / (1.0 - probability);
}

at::Tensor dropout_unit_keys(const AttentionDropout& dropout, std::int64_t batch, std::int64_t heads) {
  at::Tensor keys = at::empty({batch * heads}, at::kLong);
  const at::Tensor ids =
      dropout.sample_ids.defined() ? dropout.sample_ids.cpu().contiguous() : at::arange(batch, at::kLong);
  for (std::int64_t sequence = 0; sequence < batch; ++sequence) {
    for (std::int64_t head = 0; head < heads; ++head) {
      keys.data_ptr<std::int64_t>()[sequence * heads + head] =
          std::bit_cast<std::int64_t>(dropout_unit_key(dropout.key, ids.data_ptr<std::int64_t>()[sequence], head));
    }
  }
  return keys;
}

}  // namespace routing
