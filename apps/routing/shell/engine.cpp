#include "shell/engine.h"

#include "routing/core/error.h"
#include "routing/core/parallel.h"
#include "version.h"

#include <cstddef>
#include <dlfcn.h>
#include <filesystem>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <system_error>

namespace routing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFileName = "routing_engine.so";

// Under a limit of addresses (ulimit -v) the libraries behind the engine do not come back with an error: while it is
// loaded OpenBLAS asks for its buffers again without end, and torch ends the process. So the room is asked for before.
void require_room(const fs::path& place, const ProgramOptions& program) {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  // As measured with libtorch 1.13: the libraries with what they take at their start, OpenBLAS's buffer for each core,
  // and the stack and the storage of its own of each thread.
  constexpr std::size_t kMebibyte = std::size_t{1} << 20U;
  const std::size_t needed =
      (700 + 130 * static_cast<std::size_t>(available_cores()) + 10 * static_cast<std::size_t>(program.threads)) *
      kMebibyte;
  void* const room = ::mmap(nullptr, needed, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room != MAP_FAILED) ::munmap(room, needed);
  require<FileError>(room != MAP_FAILED, place.string(), ": cannot be loaded: it needs ", needed / kMebibyte,
                     " MiB of addresses for ", program.threads, " threads, but the limit is ",
                     limit.rlim_cur / kMebibyte, " MiB in all (ulimit -v); raise it, or lower --threads");
}

const Engine& load_from(const fs::path& place, const ProgramOptions& program) {
  require_room(place, program);
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
const Engine& load(const ProgramOptions& program) {
  std::error_code ignored;
  const fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  const fs::path installed = folder.parent_path() / "lib/routing";
  for (const fs::path& place : {folder / kFileName, installed / kFileName}) {
    if (fs::exists(place, ignored)) return load_from(place, program);
  }
  throw FileError(std::string(kFileName) + ": is neither in " + folder.string() + " nor in " + installed.string() +
                  "; models need it: put it beside the program, or build again");
}

}  // namespace

const Engine& engine(const ProgramOptions& program) {
  static const Engine& loaded = load(program);
  loaded.set_threads(program);
  return loaded;
}

}  // namespace routing
