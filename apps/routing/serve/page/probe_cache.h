// What heads attended with over texts that were asked about of late, so that the next question about the same text is
// answered at once. One thread.
#pragma once

#include "lab/heads/head_reading.h"

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <vector>

namespace routing {

class ProbeCache {
 public:
  // What is kept takes at most so many bytes; the one that was used longest ago goes first. A single one that is larger
  // is handed out and not kept.
  explicit ProbeCache(std::int64_t bytes) : limit_(bytes) {}

  // The probes of this model over these tokens; made by the function if they are not kept.
  std::shared_ptr<const ModelProbes> get(std::uint64_t model, std::span<const std::int32_t> ids,
                                         const std::function<ModelProbes()>& make);
  // Forgets those of a model that is gone.
  void forget(std::uint64_t model);

  struct Facts {
    std::int64_t bytes = 0;
    std::int64_t texts = 0;
    std::int64_t hits = 0;
    std::int64_t misses = 0;
    std::int64_t evictions = 0;
  };
  const Facts& facts() const { return facts_; }

 private:
  struct Entry {
    std::uint64_t model = 0;
    std::vector<std::int32_t> ids = {};
    std::int64_t bytes = 0;
    std::shared_ptr<const ModelProbes> probes = nullptr;
  };
  void drop(std::list<Entry>::iterator entry);

  std::int64_t limit_;
  std::list<Entry> entries_;  // the one used last first
  Facts facts_;
};

// Memory of vectors and plans, what they share counted once.
std::int64_t bytes_of(const ModelProbes& probes);

}  // namespace routing
