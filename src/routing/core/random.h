// Random numbers from counters. A stream is named, not threaded through the program: the same (seed, name, numbers)
// gives the same values in any order, on any thread, after any resume.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace routing {

// The constants of Philox4x32 with ten rounds (Salmon et al. 2011), for implementations on tensors and in kernels.
inline constexpr std::uint32_t kPhiloxMultiplier0 = 0xD2511F53U;
inline constexpr std::uint32_t kPhiloxMultiplier1 = 0xCD9E8D57U;
inline constexpr std::uint32_t kPhiloxWeyl0 = 0x9E3779B9U;
inline constexpr std::uint32_t kPhiloxWeyl1 = 0xBB67AE85U;
inline constexpr int kPhiloxRounds = 10;

// Four 32-bit words from a 64-bit key and a 128-bit counter.
std::array<std::uint32_t, 4> philox(std::uint64_t key, const std::array<std::uint32_t, 4>& counter);

// A well-spread 64-bit key from a seed, the name of the use, and the numbers that single it out (layer, head, step …).
// The order of the numbers counts. Values are part of the checkpoint promise: they never change between versions.
std::uint64_t stream_key(std::uint64_t seed, std::string_view name, std::initializer_list<std::uint64_t> numbers = {});

// Keys that differ in their last number only, without mixing the others anew: StreamKeys(seed, name, {a, b})(c) is
// stream_key(seed, name, {a, b, c}).
class StreamKeys {
 public:
  StreamKeys(std::uint64_t seed, std::string_view name, std::initializer_list<std::uint64_t> numbers = {});
  std::uint64_t operator()(std::uint64_t last) const;

 private:
  std::uint64_t start_;
};

// Successive values of one stream.
class RandomStream {
 public:
  explicit RandomStream(std::uint64_t key) : key_(key) {}
  RandomStream(std::uint64_t seed, std::string_view name, std::initializer_list<std::uint64_t> numbers = {})
      : RandomStream(stream_key(seed, name, numbers)) {}

  std::uint32_t next_u32();
  // Uniform over 0 … bound-1, without bias; bound >= 1.
  std::uint32_t below(std::uint32_t bound);
  // Uniform in [0, 1), 53 random bits.
  double uniform();
  // Standard normal, by Box and Muller's transform.
  double normal();

 private:
  std::uint64_t key_;
  std::uint64_t block_ = 0;
  std::array<std::uint32_t, 4> words_{};
  std::uint32_t used_ = 4;
  double spare_normal_ = 0.0;
  bool has_spare_normal_ = false;
};

// `count` distinct numbers of 0 … population-1, each subset equally likely, in ascending order; count <= population.
std::vector<std::int32_t> sorted_sample(RandomStream& stream, std::int32_t population, std::int32_t count);

}  // namespace routing
