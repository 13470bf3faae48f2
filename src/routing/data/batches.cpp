#include "routing/data/batches.h"

#include "routing/core/error.h"
#include "routing/core/random.h"

#include <algorithm>
#include <limits>

namespace routing {
namespace {

// Uniform over 0 … bound-1, without bias, also for splits of more than 4 GB.
std::uint64_t below(RandomStream& stream, std::uint64_t bound) {
  if (bound <= std::numeric_limits<std::uint32_t>::max()) return stream.below(static_cast<std::uint32_t>(bound));
  const std::uint64_t rejected = (0U - bound) % bound;
  for (;;) {
    const std::uint64_t upper = stream.next_u32();
    const std::uint64_t word = (upper << 32U) | stream.next_u32();
    if (word >= rejected) return word % bound;
  }
}

}  // namespace

ByteBatches::ByteBatches(std::span<const std::uint8_t> split, const BatchOptions& options)
    : split_(split), options_(options) {
  const auto bytes = static_cast<std::int64_t>(split.size());
  const std::int64_t n = options.sequence_length;
  const std::int64_t rows = options.batch_size;
  require<ConfigError>(rows >= 1, "train.batch_size is ", rows, ", but a batch has at least 1 row");
  require<ConfigError>(n >= 1, "train.sequence_length is ", n, ", but a window has at least 1 byte");
  require<ConfigError>(bytes >= n, "the training split has ", bytes, " bytes, but one window needs ", n,
                       "; lower train.sequence_length or give the split more bytes in data.split");
  require<ConfigError>(!options.contiguous || bytes / rows >= n, "the training split has ", bytes, " bytes, ",
                       bytes / rows, " for each of ", rows, " contiguous rows, but one window needs ", n,
                       "; lower train.sequence_length or train.batch_size, or set train.order to crops");
}

void ByteBatches::fill(std::int64_t batch_index, std::span<std::uint8_t> tokens,
                       std::span<std::int64_t> sample_ids) const {
  const std::int64_t rows = options_.batch_size;
  const std::int64_t n = options_.sequence_length;
  require<InputError>(batch_index >= 0, "batch ", batch_index, " asked for; batches count from 0");
  require<InputError>(static_cast<std::int64_t>(tokens.size()) == rows * n, "tokens has space for ", tokens.size(),
                      " bytes, but ", rows, " windows of ", n, " have ", rows * n);
  require<InputError>(static_cast<std::int64_t>(sample_ids.size()) == rows, "sample_ids has space for ",
                      sample_ids.size(), ", but the batch has ", rows, " rows");
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto window = tokens.subspan(static_cast<std::size_t>(row * n), static_cast<std::size_t>(n));
    if (options_.contiguous) {
      fill_contiguous(batch_index, row, window);
    } else {
      fill_crop(batch_index, row, window);
    }
    sample_ids[static_cast<std::size_t>(row)] = batch_index * rows + row;
  }
}

void ByteBatches::fill_crop(std::int64_t batch_index, std::int64_t row, std::span<std::uint8_t> window) const {
  RandomStream stream(options_.seed, "crops",
                      {static_cast<std::uint64_t>(batch_index), static_cast<std::uint64_t>(row)});
  const std::uint64_t start = below(stream, split_.size() - window.size() + 1);
  std::ranges::copy(split_.subspan(start, window.size()), window.begin());
}

void ByteBatches::fill_contiguous(std::int64_t batch_index, std::int64_t row, std::span<std::uint8_t> window) const {
  const auto bytes = static_cast<std::int64_t>(split_.size());
  const std::int64_t smaller = bytes / options_.batch_size;
  const std::int64_t larger_parts = bytes % options_.batch_size;
  const std::int64_t begin = row * smaller + std::min(row, larger_parts);
  const std::int64_t size = smaller + (row < larger_parts ? 1 : 0);
  // The remainder first: the product of two large numbers must not overflow in a long run.
  const std::int64_t offset = batch_index % size * options_.sequence_length % size;

  const auto part = split_.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(size));
  const auto until_end = part.subspan(static_cast<std::size_t>(offset));
  const std::size_t first = std::min(until_end.size(), window.size());
  std::ranges::copy(until_end.first(first), window.begin());
  // A part is no shorter than a window, so it wraps at most once.
  std::ranges::copy(part.first(window.size() - first), window.begin() + static_cast<std::ptrdiff_t>(first));
}

}  // namespace routing
