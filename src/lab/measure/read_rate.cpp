#include "lab/measure/read_rate.h"

#include "routing/core/block_pool.h"
#include "routing/core/error.h"
#include "routing/core/parallel.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>

namespace routing::bench {
namespace {

constexpr std::int64_t kWordBytes = 8;
// Eight times a last-level cache of 32 MiB.
constexpr std::int64_t kFewestBytes = std::int64_t{256} << 20U;
// What a thread takes at a time. It reads the quarters side by side, which keeps more requests under way than one line
// after the other.
constexpr std::int64_t kChunkWords = std::int64_t{32} << 10U;
constexpr std::int64_t kStreams = 4;
constexpr std::int64_t kLineWords = 8;

std::uint64_t sum_of(const std::uint64_t* from, std::int64_t words) {
  std::array<std::uint64_t, kLineWords> sums{};
  const std::int64_t stream = words / kStreams / kLineWords * kLineWords;
  for (std::int64_t line = 0; line < stream; line += kLineWords) {
    const std::uint64_t* const a = from + line;
    const std::uint64_t* const b = a + stream;
    const std::uint64_t* const c = b + stream;
    const std::uint64_t* const d = c + stream;
    for (std::int64_t i = 0; i < kLineWords; ++i) sums[static_cast<std::size_t>(i)] += (a[i] + b[i]) + (c[i] + d[i]);
  }
  std::uint64_t total = 0;
  for (std::int64_t word = kStreams * stream; word < words; ++word) total += from[word];
  for (const std::uint64_t sum : sums) total += sum;
  return total;
}

}  // namespace

ReadProbe::ReadProbe(std::int64_t most_bytes) : words_(std::max(kFewestBytes, 2 * most_bytes) / kWordBytes) {
  memory_ = static_cast<std::uint64_t*>(block_pool().take(static_cast<std::size_t>(words_ * kWordBytes)));
  // Pages that nobody has written are all the same page of zeros.
  std::fill(memory_, memory_ + words_, 1);
}

ReadProbe::~ReadProbe() {
  block_pool().give_back(memory_);
}

std::uint64_t ReadProbe::read(std::int64_t bytes) {
  const std::int64_t words = bytes / kWordBytes;
  require<InputError>(words <= words_, "read probe: ", bytes, " bytes, but there are ", words_ * kWordBytes,
                      "; make it for more");
  if (next_ + words > words_) next_ = 0;
  const std::uint64_t* const from = memory_ + next_;
  next_ += words;
  std::atomic<std::uint64_t> total{0};
  parallel_for(0, words, kChunkWords, [&](std::int64_t first, std::int64_t last) {
    total.fetch_add(sum_of(from + first, last - first), std::memory_order_relaxed);
  });
  return total;
}

}  // namespace routing::bench
