#include "routing/data/tokenizers/subwords_library.h"

#include "routing/core/error.h"

#include <dlfcn.h>

namespace routing {
namespace {

constexpr const char* kFileName = "routing_subwords.so";

// Its own symbols first (DEEPBIND), and none of them for others (LOCAL): see subwords_plugin.h. The runtime of
// AddressSanitizer cannot work with DEEPBIND and ends the process.
#if defined(__SANITIZE_ADDRESS__)
constexpr int kMode = RTLD_NOW | RTLD_LOCAL;
#else
constexpr int kMode = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
#endif

const SubwordsPlugin& load_plugin() {
  std::string places;
  for (const std::filesystem::path& place : subwords_plugin_places()) {
    places += (places.empty() ? "" : ", ") + place.parent_path().string();
    std::error_code ignored;
    if (!std::filesystem::exists(place, ignored)) continue;
    // Never closed: what SentencePiece has registered for the end of the process stays.
    void* const library = ::dlopen(place.c_str(), kMode);
    const char* const reason = library == nullptr ? ::dlerror() : nullptr;
    require<FileError>(library != nullptr, place.string(), ": cannot be loaded: ", reason == nullptr ? "" : reason,
                       "; install libsentencepiece0 and build again");
    const auto entry =
        reinterpret_cast<decltype(&routing_subwords_plugin)>(::dlsym(library, "routing_subwords_plugin"));
    const int version = entry == nullptr ? 0 : entry()->version;
    require<FileError>(version == kSubwordsPluginVersion, place.string(), ": is version ", version,
                       " of the plug-in, but this program needs ", kSubwordsPluginVersion, "; build both together");
    return *entry();
  }
  throw FileError(std::string(kFileName) + ": is not in any of " + places +
                  "; subwords need it: put it beside the program, or build again");
}

const SubwordsPlugin& plugin() {
  static const SubwordsPlugin& loaded = load_plugin();
  return loaded;
}

class Result {
 public:
  Result() = default;
  ~Result() { plugin().release(&result_); }
  Result(const Result&) = delete;
  Result& operator=(const Result&) = delete;
  SubwordsResult* get() { return &result_; }
  const SubwordsResult* operator->() const { return &result_; }

 private:
  SubwordsResult result_;
};

std::string error_of(const Result& result) {
  return result->error == nullptr ? "" : result->error;
}

}  // namespace

std::vector<std::filesystem::path> subwords_plugin_places() {
  std::error_code ignored;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const std::filesystem::path folder = program.parent_path();
  std::vector<std::filesystem::path> places{folder / kFileName, folder.parent_path() / kFileName,
                                            folder.parent_path() / "lib/routing" / kFileName};
  Dl_info holder{};
  if (::dladdr(reinterpret_cast<const void*>(&subwords_plugin_places), &holder) == 0) return places;
  // The name of a program is as it was called: a relative one would be looked for in the folder of the user's work.
  const std::filesystem::path named = holder.dli_fname;
  const std::filesystem::path own = std::filesystem::canonical(named, ignored).parent_path();
  if (named.is_absolute() && !own.empty() && own != folder) places.insert(places.begin(), own / kFileName);
  return places;
}

LoadedSubwords::LoadedSubwords(std::string_view model) {
  const SubwordsPlugin& sentencepiece = plugin();
  Result result;
  model_.reset(sentencepiece.load(model.data(), model.size(), result.get()));
  require<InputError>(model_ != nullptr, "SentencePiece refuses it: ", error_of(result));
}

void LoadedSubwords::Unload::operator()(void* model) const {
  plugin().unload(model);
}

void LoadedSubwords::encode(std::string_view text, std::vector<std::int32_t>& ids) const {
  Result result;
  plugin().encode(model_.get(), text.data(), text.size(), result.get());
  require<InputError>(result->error == nullptr, "SentencePiece cannot encode ", text.size(),
                      " bytes of text: ", error_of(result));
  const auto* const first = static_cast<const std::int32_t*>(result->data);
  ids.insert(ids.end(), first, first + result->size);
}

std::string train_subwords(const SubwordsTraining& training) {
  const SubwordsPlugin& sentencepiece = plugin();
  Result result;
  sentencepiece.train(&training, result.get());
  require<ConfigError>(result->error == nullptr, "SentencePiece cannot make ", training.vocabulary_size,
                       " pieces of this text: ", error_of(result), "; change data.vocabulary_size");
  return {static_cast<const char*>(result->data), result->size};
}

}  // namespace routing
