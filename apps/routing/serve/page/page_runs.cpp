#include "serve/page/page_runs.h"

#include "routing/config/keys.h"
#include "routing/config/text/path_list.h"
#include "routing/training/run_directory.h"
#include "serve/page/page_lines.h"
#include "serve/page/run_files.h"
#include "shell/json_text.h"

#include <algorithm>
#include <set>
#include <utility>

namespace routing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::int64_t kLargestImage = 32 << 20;

// Keys whose values are places on a disk.
bool is_path_key(const std::string& key) {
  static const std::set<std::string> keys{"data.path", "data.vocabulary", "data.cache"};
  return keys.contains(key);
}

std::string last_parts(const std::string& paths) {
  std::string shown;
  for (const std::string& each : paths_in(paths)) {
    const fs::path path(each);
    shown += (shown.empty() ? "" : ", ") + (path.has_filename() ? path : path.parent_path()).filename().string();
  }
  return shown;
}

}  // namespace

RunPages::RunPages(RunCatalog& catalog) : catalog_(catalog) {}
RunPages::~RunPages() = default;

RunFiles& RunPages::files_of(const std::string& id) {
  const fs::path folder = catalog_.folder_of(id);
  std::unique_ptr<RunFiles>& files = files_[id];
  if (!files || files->folder() != folder) files = std::make_unique<RunFiles>(folder, ++last_number_);
  return *files;
}

Json RunPages::runs() {
  catalog_.refresh();
  Json runs = Json::array();
  std::set<std::string> there;
  for (const ServedRun& run : catalog_.runs()) {
    there.insert(run.id);
    Json object{{"id", run.id}};
    object.update(files_of(run.id).summary());
    if (object.contains("problem")) object["problem"] = catalog_.without_paths(object["problem"]);
    runs.push_back(std::move(object));
  }
  std::erase_if(files_, [&](const auto& item) { return !there.contains(item.first); });
  return {{"runs", std::move(runs)}};
}

Json RunPages::config(const std::string& id) {
  const RunDirectory run(catalog_.folder_of(id));
  Json keys = Json::object();
  try {
    const ExperimentConfig config = run.read_config();
    for (const std::string& key : experiment_keys()) {
      const std::string value = get_key(config, key);
      keys[key] = is_path_key(key) ? last_parts(value) : catalog_.without_paths(value);
    }
  } catch (const Error& error) {
    throw FileError(catalog_.without_paths(error.what()));
  }
  return {{"keys", std::move(keys)}};
}

Json RunPages::metrics(const std::string& id, std::int64_t after) {
  require<InputError>(after >= 0, "after is ", after, ", but counts lines from 0 on");
  GrowingLines& lines = files_of(id).metrics();
  return metrics_json(lines, static_cast<std::size_t>(after), catalog_);
}

Json RunPages::clusters(const std::string& id, std::int64_t after) {
  GrowingLines& lines = files_of(id).clusters();
  lines.refresh();
  return clusters_json(lines, first_line_behind(lines, after), catalog_);
}

Json RunPages::samples(const std::string& id) {
  return {{"samples", files_of(id).samples(kMostSamples)}};
}

std::string RunPages::sample_image(const std::string& id, const std::string& file) {
  const fs::path folder = catalog_.folder_of(id);
  const std::int64_t step = RunDirectory::step_of_sample(file);
  // Made anew of the step: what was asked for is no part of the path.
  const fs::path path = RunDirectory(folder).sample_file(step, ".png");
  require<NotFoundError>(step >= 0 && path.filename() == file && facts_of(path).there, "run ", id, " has no image '",
                         file, "'; GET /api/runs/", id, "/samples lists those that are there");
  try {
    const PlainFile image(path);
    require<FileError>(image.facts().size <= kLargestImage, path.string(), ": has ", image.facts().size,
                       " bytes, but images of samples have at most ", kLargestImage);
    return image.read(0, image.facts().size);
  } catch (const FileError& error) {
    throw FileError(catalog_.without_paths(error.what()));
  }
}

}  // namespace routing
