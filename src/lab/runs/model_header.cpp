#include "lab/runs/model_header.h"

#include "routing/config/toml.h"
#include "routing/core/error.h"
#include "routing/core/files.h"
#include "routing/storage/safetensors_header.h"

#include <functional>
#include <numeric>
#include <set>
#include <string_view>

namespace routing {
namespace {

// The last part of a name tells what routed and LSH heads keep beside parameters.
bool is_buffer(std::string_view name) {
  static const std::set<std::string_view> buffers{"centroids",     "counts",  "sums",     "tau",
                                                  "empty_updates", "updates", "rotations"};
  return buffers.contains(name.substr(name.rfind('.') + 1));
}

}  // namespace

std::string ModelHeader::text(const std::string& key) const {
  const auto found = metadata.find(key);
  return found == metadata.end() ? "" : found->second;
}

ExperimentConfig ModelHeader::config() const {
  require<FileError>(metadata.contains("config"), path.string(),
                     ": holds no 'config' in its metadata; take a model.safetensors that routing train wrote");
  ExperimentConfig config;
  try {
    apply_toml(config, metadata.at("config"), path.string() + " (metadata 'config')");
  } catch (const ConfigError& error) {
    throw FileError(error.what());
  }
  return config;
}

ModelHeader read_model_header(const std::filesystem::path& path) {
  const MappedFile file(path);
  const SafetensorsHeader header = parse_safetensors_header(path, file.bytes());
  ModelHeader model{.path = path, .metadata = header.metadata};
  for (const SafetensorsEntry& entry : header.entries) {
    if (is_buffer(entry.name)) continue;
    model.parameters +=
        std::accumulate(entry.shape.begin(), entry.shape.end(), std::int64_t{1}, std::multiplies<std::int64_t>());
  }
  return model;
}

}  // namespace routing
