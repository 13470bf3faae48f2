// The models behind the names of runs. Used by the thread that computes, and by no other.
#pragma once

#include "serve/served_model.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace routing {

struct ServedModelsOptions {
  std::int64_t most_loaded = 4;  // at a time; of others the one that was used longest ago goes, if it is idle
  std::string checkpoint = "best";
  std::string precision = {};
  BatchLimits batch = {};
  DecoderOptions decoder = {};
  // The folder of a run that was found; nothing for a name that no run has.
  std::function<std::optional<std::filesystem::path>(const std::string& name)> folder_of = {};
  // The name to take where a request gives none; throws an ApiError where there is not exactly one.
  std::function<std::string()> only_name = {};
};

class ServedModels {
 public:
  explicit ServedModels(ServedModelsOptions options) : options_(std::move(options)) {}

  // The model of a run as its files are now. One that was loaded before goes on where the newer one cannot be read;
  // problems() says why. Throws an ApiError: 404 for a run that is not there, 503 for one that cannot be read.
  std::shared_ptr<ServedModel> get(const std::string& asked);

  // One step of every model; false if none had anything to do.
  bool advance();
  // Those that new requests get, by name.
  std::vector<std::shared_ptr<ServedModel>> current() const;
  // Why the newest checkpoint of a run is not used, by name, for those of which it is not.
  const std::map<std::string, std::string>& problems() const { return problems_; }
  bool is_idle() const;

 private:
  std::shared_ptr<ServedModel> load(const std::string& name, const std::filesystem::path& file);
  void make_room();
  void drop_finished();

  ServedModelsOptions options_;
  std::map<std::string, std::shared_ptr<ServedModel>> current_;
  std::vector<std::shared_ptr<ServedModel>> leaving_;  // replaced, but still asked
  std::map<std::string, std::string> problems_;
  std::int64_t uses_ = 0;
  std::uint64_t identities_ = 0;
};

}  // namespace routing
