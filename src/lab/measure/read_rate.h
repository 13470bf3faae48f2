// The yardstick of decoding: how fast this machine reads memory right now.
#pragma once

#include <cstdint>

namespace routing::bench {

// Memory far larger than the caches, on large pages where the system has them. Each call reads the next piece of it,
// so that what it reads was last read long ago and comes from memory.
class ReadProbe {
 public:
  // For calls of at most so many bytes.
  explicit ReadProbe(std::int64_t most_bytes);
  ~ReadProbe();
  ReadProbe(const ReadProbe&) = delete;
  ReadProbe& operator=(const ReadProbe&) = delete;

  // Reads so many bytes, rounded down to whole words of 8, once, on all threads of the process; their sum as words.
  std::uint64_t read(std::int64_t bytes);

 private:
  std::int64_t words_ = 0;
  std::int64_t next_ = 0;
  std::uint64_t* memory_ = nullptr;
};

}  // namespace routing::bench
