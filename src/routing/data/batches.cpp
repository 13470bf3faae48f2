#include "routing/data/batches.h"

#include "routing/core/error.h"
#include "routing/core/random.h"

#include <algorithm>
#include <limits>
#include <utility>

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

// Half of a word of 2 * bits bits is mixed with a function of the other half, several times: any function makes this a
// permutation of the words (Feistel). Small halves have few functions and need more rounds.
std::uint64_t mixed(std::uint64_t word, unsigned bits, std::uint64_t key) {
  const std::uint32_t rounds = bits >= 7 ? 4 : 16;
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  std::uint64_t left = word >> bits;
  std::uint64_t right = word & mask;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    const auto value =
        philox(key, {static_cast<std::uint32_t>(right), static_cast<std::uint32_t>(right >> 32U), round, 0});
    left ^= value[0] & mask;
    std::swap(left, right);
  }
  return (left << bits) | right;
}

}  // namespace

std::uint64_t shuffled_place(std::uint64_t place, std::uint64_t count, std::uint64_t key) {
  require<InputError>(place < count && count <= std::uint64_t{1} << 62U, "place ", place, " of ", count,
                      " in a random order; places count from 0");
  unsigned bits = 1;
  while (std::uint64_t{1} << (2 * bits) < count) ++bits;
  // Walking on from numbers that are not among the places ends at one, as the walk is a cycle that began at one.
  do {
    place = mixed(place, bits, key);
  } while (place >= count);
  return place;
}

TokenBatches::TokenBatches(TokenView split, const BatchOptions& options) : split_(split), options_(options) {
  const std::int64_t tokens = split.size();
  const std::int64_t n = options.sequence_length;
  const std::int64_t rows = options.batch_size;
  require<ConfigError>(rows >= 1, "train.batch_size is ", rows, ", but a batch has at least 1 row");
  require<ConfigError>(n >= 1, "train.sequence_length is ", n, ", but a window has at least 1 token");
  if (options.record_length > 0) {
    require<InputError>(tokens % options.record_length == 0, "the training split has ", tokens,
                        " tokens, which are not whole records of ", options.record_length);
    require<ConfigError>(tokens > 0, "the training split has 0 images, but at least 1 is needed");
    require<ConfigError>(n <= options.record_length, "train.sequence_length is ", n, ", but an image has ",
                         options.record_length, " values; lower train.sequence_length");
    return;
  }
  require<ConfigError>(tokens >= n, "the training split has ", tokens, " tokens, but one window needs ", n,
                       "; lower train.sequence_length or give the split more in data.split");
  require<ConfigError>(!options.contiguous || tokens / rows >= n, "the training split has ", tokens, " tokens, ",
                       tokens / rows, " for each of ", rows, " contiguous rows, but one window needs ", n,
                       "; lower train.sequence_length or train.batch_size, or set train.order to crops");
}

RowRange rows_of_rank(std::int64_t rows, int rank, int ranks) {
  require<InputError>(ranks >= 1 && rank >= 0 && rank < ranks, "rank ", rank, " of ", ranks,
                      "; ranks count from 0 to one less than there are");
  const std::int64_t smaller = rows / ranks;
  const std::int64_t larger = rows % ranks;
  return {.first = rank * smaller + std::min<std::int64_t>(rank, larger), .count = smaller + (rank < larger ? 1 : 0)};
}

void TokenBatches::fill(std::int64_t batch_index, std::span<std::int64_t> tokens,
                        std::span<std::int64_t> sample_ids) const {
  fill_rows(batch_index, {.first = 0, .count = options_.batch_size}, tokens, sample_ids);
}

void TokenBatches::fill_rows(std::int64_t batch_index, RowRange which, std::span<std::int64_t> tokens,
                             std::span<std::int64_t> sample_ids) const {
  const std::int64_t rows = which.count;
  require<InputError>(which.first >= 0 && rows >= 1 && which.first + rows <= options_.batch_size, "rows ", which.first,
                      " to ", which.first + rows - 1, " of a batch asked for, but it has ", options_.batch_size);
  const std::int64_t n = options_.sequence_length;
  const auto room = static_cast<std::int64_t>(tokens.size());
  require<InputError>(batch_index >= 0, "batch ", batch_index, " asked for; batches count from 0");
  require<InputError>(room >= rows && room % rows == 0 && room / rows <= n, "tokens has space for ", room, ", but ",
                      rows, " windows have 1 to ", n, " each");
  require<InputError>(static_cast<std::int64_t>(sample_ids.size()) == rows, "sample_ids has space for ",
                      sample_ids.size(), ", but the batch has ", rows, " rows");
  const std::int64_t length = room / rows;
  for (std::int64_t place = 0; place < rows; ++place) {
    const std::int64_t row = which.first + place;
    const auto window = tokens.subspan(static_cast<std::size_t>(place * length), static_cast<std::size_t>(length));
    if (options_.record_length > 0) {
      fill_record(batch_index, row, window);
    } else if (options_.contiguous) {
      fill_contiguous(batch_index, row, window);
    } else {
      fill_crop(batch_index, row, window);
    }
    sample_ids[static_cast<std::size_t>(place)] = batch_index * options_.batch_size + row;
  }
}

void TokenBatches::fill_crop(std::int64_t batch_index, std::int64_t row, std::span<std::int64_t> window) const {
  RandomStream stream(options_.seed, "crops",
                      {static_cast<std::uint64_t>(batch_index), static_cast<std::uint64_t>(row)});
  const std::int64_t starts = split_.size() - options_.sequence_length + 1;
  split_.copy(static_cast<std::int64_t>(below(stream, static_cast<std::uint64_t>(starts))), window);
}

void TokenBatches::fill_contiguous(std::int64_t batch_index, std::int64_t row, std::span<std::int64_t> window) const {
  const std::int64_t tokens = split_.size();
  const std::int64_t smaller = tokens / options_.batch_size;
  const std::int64_t larger_parts = tokens % options_.batch_size;
  const std::int64_t begin = row * smaller + std::min(row, larger_parts);
  const std::int64_t size = smaller + (row < larger_parts ? 1 : 0);
  // The remainder first: the product of two large numbers must not overflow in a long run.
  const std::int64_t offset = batch_index % size * options_.sequence_length % size;

  const std::size_t first = std::min(static_cast<std::size_t>(size - offset), window.size());
  split_.copy(begin + offset, window.first(first));
  // A part is no shorter than a window, so it wraps at most once.
  split_.copy(begin, window.subspan(first));
}

void TokenBatches::fill_record(std::int64_t batch_index, std::int64_t row, std::span<std::int64_t> window) const {
  const std::int64_t records = split_.size() / options_.record_length;
  const std::int64_t sample = batch_index * options_.batch_size + row;
  auto place = static_cast<std::uint64_t>(sample % records);
  if (!options_.contiguous) {
    const auto round = static_cast<std::uint64_t>(sample / records);
    place = shuffled_place(place, static_cast<std::uint64_t>(records), stream_key(options_.seed, "records", {round}));
  }
  split_.copy(static_cast<std::int64_t>(place) * options_.record_length, window);
}

}  // namespace routing
