#include "serve/served_models.h"

#include "generate/generate_prompt.h"
#include "inputs/run_files.h"
#include "inputs/run_model.h"
#include "routing/core/error.h"
#include "routing/data/tasks/sequence_tasks.h"
#include "serve/request/api_error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/stat.h>
#include <utility>

namespace routing {

namespace fs = std::filesystem;

FileStamp stamp_of(const fs::path& path) {
  struct stat state {};
  require<FileError>(::stat(path.c_str(), &state) == 0, path.string(), ": cannot be read: ", std::strerror(errno));
  constexpr std::int64_t kNanoseconds = 1000000000;
  return {.path = path,
          .inode = state.st_ino,
          .bytes = state.st_size,
          .changed = state.st_mtim.tv_sec * kNanoseconds + state.st_mtim.tv_nsec};
}

bool ServedModel::is_busy() const {
  const CompletionBatch::Facts facts = batch->facts();
  return facts.waiting + facts.reading + facts.active > 0;
}

const Tokenizer& ServedModel::text_of(const std::string& use) const {
  if (tokenizer != nullptr) return *tokenizer;
  throw ApiError(400, name + " is a model of images, which have no text; " + use, "model");
}

std::int64_t ServedModel::end_token() const {
  if (reads_source()) return kEndSymbol;
  // <eos> of words ends a line, not the text.
  return tokenizer == nullptr || tokenizer->kind() == "words" ? -1 : tokenizer->end_id();
}

void ServedModel::add_labels(nlohmann::ordered_json& object) const {
  object["validity"] = validity_label(config());
  if (!notes.data_label.empty()) object["data_label"] = notes.data_label;
}

std::shared_ptr<ServedModel> ServedModels::load(const std::string& name, const fs::path& file) {
  auto served = std::make_shared<ServedModel>();
  served->name = name;
  served->identity = ++identities_;
  // Before the file is read: one that is replaced meanwhile is then seen as another.
  served->file = stamp_of(file);
  served->model = load_sequence_model(file);
  served->notes = load_model_notes(file);
  served->precision = chosen_precision(options_.precision, served->config());
  if (served->reads_source()) {
    served->tokenizer = std::make_shared<SymbolText>(served->config().model.vocab_size);
  } else if (!served->is_image()) {
    served->tokenizer = model_tokenizer(file, served->config(), "");
  }
  DecoderOptions decoder = options_.decoder;
  decoder.precision = served->precision;
  served->decoder = make_decoder(served->model, decoder);
  served->batch = std::make_unique<CompletionBatch>(*served->decoder, options_.batch);
  return served;
}

std::shared_ptr<ServedModel> ServedModels::get(const std::string& asked) {
  const std::string name = asked.empty() ? options_.only_name() : asked;
  const auto found = current_.find(name);
  const std::optional<fs::path> folder = options_.folder_of(name);
  if (!folder) {
    if (found != current_.end()) {
      leaving_.push_back(std::move(found->second));
      current_.erase(found);
    }
    throw ApiError(404, "there is no run '" + name + "'; GET /v1/models lists those that are there", "model");
  }
  try {
    const fs::path file = model_file(*folder, options_.checkpoint);
    if (found == current_.end() || found->second->file != stamp_of(file)) {
      std::shared_ptr<ServedModel> loaded = load(name, file);
      if (found != current_.end()) leaving_.push_back(std::exchange(found->second, loaded));
      current_[name] = std::move(loaded);
      make_room();
    }
    problems_.erase(name);
  } catch (const Error& error) {
    problems_[name] = error.what();
    if (!current_.contains(name)) throw;
  }
  const std::shared_ptr<ServedModel>& model = current_.at(name);
  model->last_used = ++uses_;
  return model;
}

void ServedModels::make_room() {
  while (static_cast<std::int64_t>(current_.size()) > options_.most_loaded) {
    auto oldest = current_.end();
    for (auto each = current_.begin(); each != current_.end(); ++each) {
      // The newest has no uses yet.
      if (each->second->last_used == 0) continue;
      if (oldest == current_.end() || each->second->last_used < oldest->second->last_used) oldest = each;
    }
    if (oldest == current_.end()) return;
    leaving_.push_back(std::move(oldest->second));
    current_.erase(oldest);
  }
}

void ServedModels::drop_finished() {
  std::erase_if(leaving_,
                [](const std::shared_ptr<ServedModel>& model) { return model.use_count() == 1 && !model->is_busy(); });
}

bool ServedModels::advance() {
  bool any = false;
  for (const auto& [name, model] : current_) any = model->batch->advance() || any;
  for (const auto& model : leaving_) any = model->batch->advance() || any;
  drop_finished();
  return any;
}

std::vector<std::shared_ptr<ServedModel>> ServedModels::current() const {
  std::vector<std::shared_ptr<ServedModel>> all;
  for (const auto& [name, model] : current_) all.push_back(model);
  return all;
}

bool ServedModels::is_idle() const {
  return std::none_of(leaving_.begin(), leaving_.end(), [](const auto& model) { return model->is_busy(); }) &&
         std::none_of(current_.begin(), current_.end(), [](const auto& each) { return each.second->is_busy(); });
}

}  // namespace routing
