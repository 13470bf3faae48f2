#include "routing/core/random.h"

#include "routing/core/error.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <unordered_set>

namespace routing {
namespace {

constexpr std::uint32_t high(std::uint64_t word) {
  return static_cast<std::uint32_t>(word >> 32U);
}
constexpr std::uint32_t low(std::uint64_t word) {
  return static_cast<std::uint32_t>(word);
}

// The finaliser of splitmix64: every input bit reaches every output bit.
constexpr std::uint64_t mix(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15ULL;
  value = (value ^ (value >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  value = (value ^ (value >> 27U)) * 0x94D049BB133111EBULL;
  return value ^ (value >> 31U);
}

std::uint64_t named_key(std::uint64_t seed, std::string_view name, std::size_t numbers) {
  std::uint64_t key = mix(seed);
  for (const char letter : name) key = mix(key ^ static_cast<unsigned char>(letter));
  // The length separates the name from the numbers, so that no two different uses can share their input.
  return mix(key ^ (std::uint64_t{name.size()} << 32U) ^ numbers);
}

std::uint64_t with_numbers(std::uint64_t key, std::initializer_list<std::uint64_t> numbers) {
  for (const std::uint64_t number : numbers) key = mix(key ^ mix(number));
  return key;
}

}  // namespace

std::array<std::uint32_t, 4> philox(std::uint64_t key, const std::array<std::uint32_t, 4>& counter) {
  std::array<std::uint32_t, 4> words = counter;
  std::uint32_t key0 = low(key);
  std::uint32_t key1 = high(key);
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const std::uint64_t product0 = std::uint64_t{kPhiloxMultiplier0} * words[0];
    const std::uint64_t product1 = std::uint64_t{kPhiloxMultiplier1} * words[2];
    words = {high(product1) ^ words[1] ^ key0, low(product1), high(product0) ^ words[3] ^ key1, low(product0)};
    key0 += kPhiloxWeyl0;
    key1 += kPhiloxWeyl1;
  }
  return words;
}

std::uint64_t stream_key(std::uint64_t seed, std::string_view name, std::initializer_list<std::uint64_t> numbers) {
  return with_numbers(named_key(seed, name, numbers.size()), numbers);
}

StreamKeys::StreamKeys(std::uint64_t seed, std::string_view name, std::initializer_list<std::uint64_t> numbers)
    : start_(with_numbers(named_key(seed, name, numbers.size() + 1), numbers)) {}

std::uint64_t StreamKeys::operator()(std::uint64_t last) const {
  return with_numbers(start_, {last});
}

std::uint32_t RandomStream::next_u32() {
  if (used_ == 4) {
    words_ = philox(key_, {low(block_), high(block_), 0, 0});
    ++block_;
    used_ = 0;
  }
  return words_.at(used_++);
}

std::uint32_t RandomStream::below(std::uint32_t bound) {
  require<InputError>(bound >= 1, "RandomStream::below: bound is 0, but it must be at least 1");
  // Draws from the incomplete last copy of 0 … bound-1 are thrown away.
  const std::uint32_t rejected = (0U - bound) % bound;
  for (;;) {
    const std::uint32_t word = next_u32();
    if (word >= rejected) return word % bound;
  }
}

double RandomStream::uniform() {
  const std::uint64_t upper = next_u32();
  const std::uint64_t bits = (upper << 32U) | next_u32();
  return static_cast<double>(bits >> 11U) * 0x1.0p-53;
}

double RandomStream::normal() {
  if (has_spare_normal_) {
    has_spare_normal_ = false;
    return spare_normal_;
  }
  const double radius = std::sqrt(-2.0 * std::log1p(-uniform()));
  const double angle = 2.0 * std::numbers::pi * uniform();
  spare_normal_ = radius * std::sin(angle);
  has_spare_normal_ = true;
  return radius * std::cos(angle);
}

std::vector<std::int32_t> sorted_sample(RandomStream& stream, std::int32_t population, std::int32_t count) {
  require<InputError>(count >= 0 && count <= population, "sorted_sample: ", count,
                      " distinct numbers asked for out of ", population, "; ask for at most as many as there are");
  // Floyd's algorithm: `count` draws whatever the population.
  std::unordered_set<std::int32_t> chosen;
  for (std::int32_t last = population - count; last < population; ++last) {
    const auto draw = static_cast<std::int32_t>(stream.below(static_cast<std::uint32_t>(last) + 1));
    if (!chosen.insert(draw).second) chosen.insert(last);
  }
  std::vector<std::int32_t> sample(chosen.begin(), chosen.end());
  std::sort(sample.begin(), sample.end());
  return sample;
}

}  // namespace routing
