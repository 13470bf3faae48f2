// A store in memory, with connections that can break or fall silent.
#pragma once

#include "routing/distributed/watch/rank_store.h"

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace routing {

// What all connections share.
struct StoreMemory {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::string> words;
  bool gone = false;    // every call throws
  bool silent = false;  // no call returns
  void set(bool StoreMemory::*what, bool value) {
    {
      const std::lock_guard lock(mutex);
      this->*what = value;
    }
    changed.notify_all();
  }
};

class MemoryStore : public RankStore {
 public:
  explicit MemoryStore(std::shared_ptr<StoreMemory> memory) : memory_(std::move(memory)) {}

  void set(const std::string& key, const std::string& value) override {
    const auto lock = enter();
    memory_->words[key] = value;
  }
  std::optional<std::string> get(const std::string& key) override {
    const auto lock = enter();
    const auto found = memory_->words.find(key);
    return found == memory_->words.end() ? std::nullopt : std::optional<std::string>(found->second);
  }
  std::int64_t add(const std::string& key, std::int64_t amount) override {
    const auto lock = enter();
    std::string& word = memory_->words[key];
    word = std::to_string((word.empty() ? 0 : std::stoll(word)) + amount);
    return std::stoll(word);
  }

 private:
  std::unique_lock<std::mutex> enter() {
    std::unique_lock lock(memory_->mutex);
    memory_->changed.wait(lock, [this] { return !memory_->silent; });
    if (memory_->gone) throw StoreError("the store in memory is gone");
    return lock;
  }
  std::shared_ptr<StoreMemory> memory_;
};

}  // namespace routing
