// Training windows by number: the n-th batch is a function of the options and n alone, so a resumed run needs to know
// only how far it was.
#pragma once

#include <cstdint>
#include <span>

namespace routing {

struct BatchOptions {
  std::int64_t batch_size = 1;
  std::int64_t sequence_length = 1;  // n, bytes a window
  std::uint64_t seed = 0;            // of the crops
  bool contiguous = false;           // crops otherwise
};

// A window is n successive bytes b_0 … b_(n-1), all of them targets. The model reads them shifted right by one behind
// token 0 (0, b_0 … b_(n-2)), so windows do not overlap by a byte and carry no input of their own.
//
// crops       The start of each window is uniform over 0 … bytes - n, from the stream (seed, "crops", batch, row).
// contiguous  Row r reads its own part of the split and goes on where its window in the batch before ended. The parts
//             tile the split: each has floor(bytes / batch_size) bytes, the first bytes mod batch_size of them one
//             more. A part is a ring: behind its last byte comes its first, also inside a window. So p successive
//             targets of a row, where p is the size of its part, hold every byte of the part exactly once, and no tail
//             is dropped.
//
// The bytes must outlive the object. Safe to use from several threads.
//
// Throws  ConfigError  the split has fewer than n bytes, or, if contiguous, a part has
//         InputError   a negative index, or spans of the wrong size
class ByteBatches {
 public:
  ByteBatches(std::span<const std::uint8_t> split, const BatchOptions& options);

  // tokens      [batch_size, n] receives the windows
  // sample_ids  [batch_size] receives batch_index * batch_size + row, a name for the sample that no other has
  void fill(std::int64_t batch_index, std::span<std::uint8_t> tokens, std::span<std::int64_t> sample_ids) const;

 private:
  void fill_crop(std::int64_t batch_index, std::int64_t row, std::span<std::uint8_t> window) const;
  void fill_contiguous(std::int64_t batch_index, std::int64_t row, std::span<std::uint8_t> window) const;

  std::span<const std::uint8_t> split_;
  BatchOptions options_;
};

}  // namespace routing
