// A uniform sample of the tokens of a step, for what sums cannot give: quantiles of scores, first centroids, new places
// for dead ones.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace routing {

// Every token has a priority of its own, a function of its identity; the sample is the tokens with the lowest ones. So
// it does not depend on the order of tokens, on batches split in parts or on ranks: merging samples gives that of all.
class TokenSample {
 public:
  TokenSample() = default;
  TokenSample(std::size_t capacity, std::size_t dim) : capacity_(capacity), dim_(dim) {}

  void offer(std::uint64_t priority, std::span<const float> vector);
  void merge(const TokenSample& other);

  struct Entry {
    std::uint64_t priority;
    std::vector<float> vector;
  };
  // Lowest priority first.
  std::vector<Entry> entries() const;
  std::vector<std::vector<float>> vectors() const;
  std::size_t capacity() const { return capacity_; }
  std::size_t dim() const { return dim_; }

 private:
  std::size_t capacity_ = 0;
  std::size_t dim_ = 0;
  std::vector<Entry> heap_;  // the highest priority on top
};

}  // namespace routing
