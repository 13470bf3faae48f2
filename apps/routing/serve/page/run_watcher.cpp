#include "serve/page/page_lines.h"
#include "serve/page/page_runs.h"
#include "serve/page/run_files.h"
#include "shell/json_text.h"

#include <map>
#include <utility>

namespace routing {
namespace {

using Json = nlohmann::ordered_json;
using Text = std::shared_ptr<const std::string>;

Text text_of(const Json& value) {
  return std::make_shared<const std::string>(json_text(value));
}

}  // namespace

// What one watcher has been told.
struct RunWatcher::Seen {
  Watched wanted = {};
  Text runs = nullptr;
  std::uint64_t files = 0;  // RunFiles::number()
  bool has_more = false;    // the client says that it has lines that are not there
  // Lines, and how often files had been cut back then.
  std::size_t metrics = 0;
  std::size_t metrics_cuts = 0;
  std::size_t clusters = 0;
  std::size_t clusters_cuts = 0;
  std::uint64_t samples = 0;
};

// What was made in one round, for others that need the same.
struct RunWatcher::Told {
  struct Lines {
    Text text = nullptr;
    std::size_t next = 0;
  };
  std::map<std::pair<const RunFiles*, std::size_t>, Lines> metrics = {};
  std::map<std::pair<const RunFiles*, std::size_t>, Lines> clusters = {};
  std::map<const RunFiles*, Text> samples = {};
};

RunWatcher::RunWatcher(RunPages& pages) : pages_(pages) {}
RunWatcher::~RunWatcher() = default;

std::uint64_t RunWatcher::add(const Watched& watched) {
  auto seen = std::make_unique<Seen>();
  seen->wanted = watched;
  if (!watched.run.empty()) {
    require<InputError>(watched.metrics >= 0, "after is ", watched.metrics, ", but counts lines from 0 on");
    RunFiles& files = pages_.files_of(watched.run);
    seen->files = files.number();
    files.metrics().refresh();
    files.clusters().refresh();
    seen->metrics_cuts = files.metrics().cuts();
    seen->clusters_cuts = files.clusters().cuts();
    seen->metrics = static_cast<std::size_t>(watched.metrics);
    seen->has_more = seen->metrics > files.metrics().size();
    if (seen->has_more) seen->metrics = 0;
    seen->clusters =
        watched.clusters == kNow ? files.clusters().size() : first_line_behind(files.clusters(), watched.clusters);
    const Json& samples = files.samples(RunPages::kMostSamples);
    const std::int64_t last = samples.empty() ? -1 : samples.back().at("step").get<std::int64_t>();
    seen->samples = watched.samples == kNow || last <= watched.samples ? files.samples_version() : 0;
  }
  watchers_.emplace(++last_, std::move(seen));
  return last_;
}

void RunWatcher::remove(std::uint64_t watcher) {
  watchers_.erase(watcher);
}

void RunWatcher::tell_run(std::uint64_t watcher, Seen& seen, Told& told, std::vector<Event>& events) {
  const auto found = pages_.files_.find(seen.wanted.run);
  if (found == pages_.files_.end()) return;  // Gone; the list has said so.
  RunFiles& files = *found->second;
  if (files.number() != seen.files) {
    // Another run has taken the name: nothing that was told holds.
    seen = {.wanted = seen.wanted, .runs = seen.runs, .files = files.number(), .has_more = true};
  }
  const auto tell = [&](const char* name, const Text& text) { events.push_back({watcher, name, text}); };

  GrowingLines& metrics = files.metrics();
  metrics.refresh();
  const std::size_t kept = metrics.kept_since(seen.metrics_cuts, seen.metrics);
  seen.metrics_cuts = metrics.cuts();
  if (seen.has_more || kept < seen.metrics || kept < metrics.size()) {
    Told::Lines& lines = told.metrics[{&files, kept}];
    if (!lines.text) {
      Json object{{"id", seen.wanted.run}};
      object.update(metrics_json(metrics, kept, pages_.catalog_));
      lines = {.text = text_of(object), .next = object.at("next").get<std::size_t>()};
    }
    seen.metrics = lines.next;
    tell("metrics", lines.text);
  }

  GrowingLines& clusters = files.clusters();
  clusters.refresh();
  const std::size_t same = clusters.kept_since(seen.clusters_cuts, seen.clusters);
  seen.clusters_cuts = clusters.cuts();
  if (seen.has_more || same < seen.clusters || same < clusters.size()) {
    Told::Lines& lines = told.clusters[{&files, same}];
    if (!lines.text) {
      Json object{{"id", seen.wanted.run}};
      object.update(clusters_json(clusters, same, pages_.catalog_));
      lines = {.text = text_of(object), .next = clusters.size()};
    }
    seen.clusters = lines.next;
    tell("clusters", lines.text);
  }
  seen.has_more = false;

  const Json& samples = files.samples(RunPages::kMostSamples);
  if (files.samples_version() == seen.samples) return;
  seen.samples = files.samples_version();
  Text& text = told.samples[&files];
  if (!text) text = text_of({{"id", seen.wanted.run}, {"samples", samples}});
  tell("samples", text);
}

std::vector<RunWatcher::Event> RunWatcher::poll() {
  if (watchers_.empty()) return {};
  std::vector<Event> events;
  const Text now = text_of(pages_.runs());
  if (!list_ || *now != *list_) list_ = now;
  Told told;
  for (auto& [number, seen] : watchers_) {
    if (seen->runs != list_) events.push_back({number, "runs", seen->runs = list_});
    if (seen->wanted.run.empty()) continue;
    try {
      tell_run(number, *seen, told, events);
    } catch (const FileError&) {
      // Replaced again and again while it was read. What was not told will be the next time.
    }
  }
  return events;
}

}  // namespace routing
