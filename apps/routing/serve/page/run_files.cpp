#include "serve/page/run_files.h"

#include "lab/runs/run_summary.h"
#include "routing/core/error.h"
#include "routing/training/run_directory.h"
#include "routing/training/run_lock.h"
#include "runs/run_json.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace routing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::int64_t kLongestSample = 64 << 10;  // bytes of a text that are shown

Json sample_json(const fs::path& file, std::int64_t step) {
  if (file.extension() == ".png") return {{"step", step}, {"kind", "image"}, {"file", file.filename().string()}};
  return {{"step", step}, {"kind", "text"}, {"text", PlainFile(file).read(0, kLongestSample)}};
}

}  // namespace

std::vector<std::size_t> evenly_thinned(const std::vector<std::size_t>& all, std::size_t count) {
  if (all.size() <= count) return all;
  if (count < 2) return count == 0 ? std::vector<std::size_t>() : std::vector<std::size_t>{all.back()};
  std::vector<std::size_t> some;
  for (std::size_t i = 0; i < count; ++i) some.push_back(all[i * (all.size() - 1) / (count - 1)]);
  return some;
}

LineMark RunFiles::Metrics::take(const Json& line) {
  history_.add(line);
  return {.step = line.at("step").get<std::int64_t>(), .training = line.contains("train_loss_nats")};
}

LineMark RunFiles::Clusters::take(const Json& line) {
  // All that the page will ask of it.
  for (const Json& head : line.at("heads")) {
    head.at("attention").get_ref<const std::string&>();
    head.at("head").get<std::int64_t>();
    head.at("shares").get<std::vector<double>>();
    head.at("dead").get<std::int64_t>();
  }
  return {.step = line.at("step").get<std::int64_t>()};
}

RunFiles::RunFiles(fs::path folder, std::uint64_t number)
    : folder_(std::move(folder)),
      number_(number),
      metrics_(RunDirectory(folder_).metrics_file(), history_),
      clusters_(RunDirectory(folder_).clusters_file(), shares_) {}

std::vector<FileFacts> RunFiles::look() const {
  const RunDirectory run(folder_);
  std::vector<FileFacts> facts{facts_of(run.metrics_file()), facts_of(run.config_file()),
                               facts_of(folder_ / "model.safetensors"), facts_of(folder_)};
  for (const CheckpointPlace& place : run.whole_checkpoints()) {
    for (const fs::path& file : {place.model(), place.trainer()}) facts.push_back(facts_of(file));
  }
  return facts;
}

const Json& RunFiles::summary() {
  std::vector<FileFacts> facts = look();
  const bool locked = is_locked(folder_);
  if (!summary_.is_null() && facts == summarized_ && locked == was_locked_) return summary_;
  summarized_ = std::move(facts);
  was_locked_ = locked;
  summary_ = run_json(summarize_run(folder_, [&] {
    metrics_.refresh();
    require<FileError>(metrics_.problem().empty(), metrics_.problem());
    return history_.history().history();
  }));
  return summary_;
}

const Json& RunFiles::samples(std::size_t most) {
  const fs::path folder = RunDirectory(folder_).samples_folder();
  const std::int64_t now = nanoseconds_now();
  const FileFacts facts = facts_of(folder);
  if (listed_ == facts) return samples_;
  // Names that come within the same tick of the clock leave the folder as it looks now.
  listed_ = facts.settled(now) || !facts.there ? std::optional(facts) : std::nullopt;
  std::vector<std::pair<std::int64_t, fs::path>> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::int64_t step = RunDirectory::step_of_sample(entry->path().filename());
    if (step >= 0) found.emplace_back(step, entry->path());
  }
  std::sort(found.begin(), found.end());
  std::vector<std::size_t> all(found.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  Json list = Json::array();
  for (const std::size_t i : evenly_thinned(all, most)) {
    try {
      list.push_back(sample_json(found[i].second, found[i].first));
    } catch (const FileError&) {
      listed_.reset();  // Taken away while it was read: what is there now will be seen the next time.
    }
  }
  if (list == samples_) return samples_;
  samples_ = std::move(list);
  ++samples_version_;
  return samples_;
}

}  // namespace routing
