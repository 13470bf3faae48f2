// Words that ranks leave for each other in the store, and the variables of torchrun.
#include "fuzz/targets.h"
#include "routing/distributed/watch/heartbeat.h"
#include "routing/distributed/watch/rank_place.h"
#include "routing/distributed/watch/rank_store.h"

#include <map>
#include <sstream>

namespace routing::fuzz {
namespace {

class StoreOfWords : public RankStore {
 public:
  void set(const std::string& key, const std::string& value) override { words[key] = value; }
  std::optional<std::string> get(const std::string& key) override {
    const auto found = words.find(key);
    return found == words.end() ? std::nullopt : std::optional(found->second);
  }
  std::int64_t add(const std::string&, std::int64_t amount) override { return amount; }

  std::map<std::string, std::string> words;
};

// Lines: KEY WORDS of the store, or NAME=VALUE of the environment.
void run(Bytes bytes) {
  constexpr int kRanks = 3;
  std::istringstream lines{std::string(text_of(bytes))};
  StoreOfWords store;
  std::map<std::string, std::string> variables;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t cut = line.find_first_of(" =");
    if (cut == std::string::npos) continue;
    const std::string value = line.substr(cut + 1);
    (line[cut] == ' ' ? store.words : variables)[line.substr(0, cut)] = value;
    if (const auto beat = beat_from_text(value)) hold(to_text(*beat) == value, "a beat that no rank wrote");
    if (const auto failure = failure_from_record(value)) {
      const auto again = failure_from_record(to_record(*failure));
      hold(again && again->rank == failure->rank && again->step == failure->step && again->reason == failure->reason,
           "a failure reads as another: " + value);
      failure->text();
    }
  }
  Jury jury(store, {}, kRanks, std::chrono::milliseconds(1000));
  for (int look = 0; look < 2; ++look) {
    if (const auto verdict = jury.look()) {
      hold(verdict->rank >= -1 && verdict->rank < kRanks, "a rank that there is not failed");
      verdict->text();
    }
    jury.last_step();
  }
  takes([&] {
    const auto place = rank_place([&](const std::string& name) -> std::optional<std::string> {
      const auto found = variables.find(name);
      return found == variables.end() ? std::nullopt : std::optional(found->second);
    });
    if (place) hold(place->size >= 1 && place->rank >= 0 && place->rank < place->size, "a rank beyond the others");
  });
}

std::vector<std::string> seeds() {
  return {"beat/0 5 3 1 200\nbeat/1 5 3 2 900\nbeat/2 7 4 3 0\n",
          "failed/1 1 37 out of memory\nverdict 1 37 gone\n",
          "beat/0 9223372036854775807 9223372036854775807 2 9223372036854775807\nbeat/1 1 -1 0 -5\nverdict -1 0 x\n",
          "RANK=1\nWORLD_SIZE=2\nLOCAL_RANK=0\nMASTER_ADDR=localhost\nMASTER_PORT=29500\n",
          "RANK=2\nWORLD_SIZE=2\nMASTER_PORT=65536\n",
          "failed/0 99 1 no such rank\nfailed/2 2147483648 9 big\n"};
}

}  // namespace

FuzzTarget rank_words_target() {
  return {"rank_words", run, seeds};
}

}  // namespace routing::fuzz
