#include "shell/engine.h"

#include "routing/core/error.h"
#include "version.h"

#include <dlfcn.h>
#include <filesystem>
#include <string>
#include <system_error>

namespace routing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFileName = "routing_engine.so";

const Engine& load_from(const fs::path& place) {
  // Lazily, as the system binds programs. Never closed: threads and what is registered for the end of the process stay.
  void* const library = ::dlopen(place.c_str(), RTLD_LAZY | RTLD_LOCAL);
  const char* const reason = library == nullptr ? ::dlerror() : nullptr;
  require<FileError>(library != nullptr, place.string(), ": cannot be loaded: ", reason == nullptr ? "" : reason,
                     "; install libtorch (make setup does) and build again");
  const auto entry = reinterpret_cast<decltype(&routing_engine)>(::dlsym(library, "routing_engine"));
  const std::string version = entry == nullptr ? "unknown" : entry()->version();
  require<FileError>(version == program_version(), place.string(), ": is of version ", version,
                     ", but this program of ", program_version(), "; build or install both together");
  return *entry();
}

// Beside the program where it was built, in lib/routing where it is installed.
const Engine& load() {
  std::error_code ignored;
  const fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  const fs::path installed = folder.parent_path() / "lib/routing";
  for (const fs::path& place : {folder / kFileName, installed / kFileName}) {
    if (fs::exists(place, ignored)) return load_from(place);
  }
  throw FileError(std::string(kFileName) + ": is neither in " + folder.string() + " nor in " + installed.string() +
                  "; models need it: put it beside the program, or build again");
}

}  // namespace

const Engine& engine(const ProgramOptions& program) {
  static const Engine& loaded = load();
  loaded.set_threads(program);
  return loaded;
}

}  // namespace routing
