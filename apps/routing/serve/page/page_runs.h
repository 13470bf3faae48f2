// What the page asks about runs, as JSON made of their files (docs/server.md). Knows no torch. One thread: that of
// files.
//
// Of files that grow only the new bytes are read, once, whoever asks: stat first. Files may grow, be cut back by a
// resumed training, be replaced, vanish and end in half a line at any time.
#pragma once

#include "serve/page/run_catalog.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace routing {

class RunFiles;  // what was read of one run

class RunPages {
 public:
  // The catalog must outlive it.
  explicit RunPages(RunCatalog& catalog);
  ~RunPages();
  RunPages(const RunPages&) = delete;
  RunPages& operator=(const RunPages&) = delete;

  // GET /api/runs: looks for runs, and reads what has changed of them.
  nlohmann::ordered_json runs();

  // GET /api/runs/{id}/…; all throw a NotFoundError for an id that is not served.
  nlohmann::ordered_json config(const std::string& id);
  // Lines from number `after` on: all of evaluation, and of training at most kMostLines, evenly thinned with the last
  // one kept. {"from", "next", "lines"}; `from` is 0 where there are fewer lines than `after`. "problem" says what
  // could not be read. An InputError for a negative `after`.
  nlohmann::ordered_json metrics(const std::string& id, std::int64_t after);
  // Steps behind `after`, at most kMostSteps, evenly thinned with the last one kept.
  nlohmann::ordered_json clusters(const std::string& id, std::int64_t after);
  // By step, at most kMostSamples, evenly thinned with the last one kept.
  nlohmann::ordered_json samples(const std::string& id);
  // The bytes of step-….png; a NotFoundError for any other name.
  std::string sample_image(const std::string& id, const std::string& file);

  static constexpr std::size_t kMostLines = 2000;
  static constexpr std::size_t kMostSteps = 400;
  static constexpr std::size_t kMostSamples = 100;

 private:
  friend class RunWatcher;
  RunFiles& files_of(const std::string& id);

  RunCatalog& catalog_;
  std::map<std::string, std::unique_ptr<RunFiles>> files_;  // by id
  std::uint64_t last_number_ = 0;
};

// GET /api/events: who waits for what, and what there is to tell. Asked again and again, about once a second.
class RunWatcher {
 public:
  // The pages must outlive it.
  explicit RunWatcher(RunPages& pages);
  ~RunWatcher();
  RunWatcher(const RunWatcher&) = delete;
  RunWatcher& operator=(const RunWatcher&) = delete;

  static constexpr std::int64_t kNow = -2;
  // What a client has already. It hears of the list of runs at once, and of what is new in its run from then on.
  struct Watched {
    std::string run = {};          // an id; empty: only the list
    std::int64_t metrics = 0;      // lines that it has
    std::int64_t clusters = kNow;  // the last step that it has, -1 for none; kNow: what is there now is not told
    std::int64_t samples = kNow;   // likewise
  };
  // The number of a new watcher. A NotFoundError for an id that is not served.
  std::uint64_t add(const Watched& watched);
  void remove(std::uint64_t watcher);
  std::size_t size() const { return watchers_.size(); }

  // `data` is one line of JSON, shared by all that hear the same:
  //
  //   runs      what RunPages::runs() gives
  //   metrics   {"id", "from", "next", "lines"}: what the client has from line `from` on is no more
  //   clusters  {"id", "after", "heads", "steps", "shares", "dead"}: what it has behind step `after` is no more
  //   samples   {"id", "samples"}: all that there are
  struct Event {
    std::uint64_t watcher = 0;
    const char* name = "";
    std::shared_ptr<const std::string> data;
  };
  // What has changed since the last call, for each watcher. Costs some stat per run, and reading what is new.
  std::vector<Event> poll();

 private:
  struct Seen;
  struct Told;
  void tell_run(std::uint64_t watcher, Seen& seen, Told& told, std::vector<Event>& events);

  RunPages& pages_;
  std::map<std::uint64_t, std::unique_ptr<Seen>> watchers_;
  std::uint64_t last_ = 0;
  std::shared_ptr<const std::string> list_;  // of runs, as it was told last
};

}  // namespace routing
