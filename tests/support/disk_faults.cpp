#include "support/disk_faults.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <optional>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#include <utility>

namespace routing::disk_faults {
namespace {

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

std::string variable(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

int reason_called(const std::string& name) {
  if (name == "ENOSPC") return ENOSPC;
  if (name == "EIO") return EIO;
  return name == "EINTR" ? EINTR : 0;
}

// What the next call gets: nothing, its own number as the reason, or half of a write.
enum class Fate { works, fails, half };

class Disk {
 public:
  // Never taken down: files are closed until the very end of a process.
  static Disk& get() {
    static Disk* const disk = new Disk;
    return *disk;
  }

  void begin(const Orders& orders) {
    const std::lock_guard lock(mutex_);
    orders_ = orders;
    calls_.clear();
    active_ = true;
  }

  std::vector<Call> end() {
    const std::lock_guard lock(mutex_);
    active_ = false;
    return std::exchange(calls_, {});
  }

  bool is_below(const char* path) {
    const std::lock_guard lock(mutex_);
    return active_ && absolute(path).starts_with(orders_.below);
  }

  void opened(int file, const char* path) {
    const std::lock_guard lock(mutex_);
    paths_[file] = absolute(path);
  }

  std::optional<std::string> path_of(int file) {
    const std::lock_guard lock(mutex_);
    const auto found = paths_.find(file);
    return !active_ || found == paths_.end() ? std::nullopt : std::optional(found->second);
  }

  void closed(int file) {
    const std::lock_guard lock(mutex_);
    paths_.erase(file);
  }

  Fate fate(const char* name, const std::string& path, const char* other = nullptr) {
    const std::lock_guard lock(mutex_);
    Call call{.name = name, .path = absolute(path.c_str()), .other = other == nullptr ? "" : absolute(other)};
    const auto number = static_cast<std::int64_t>(calls_.size()) + 1;
    const bool writes = call.name == "write" || call.name == "pwrite";
    call.failed = orders_.call > 0 && (number == orders_.call || (orders_.lasts && number > orders_.call));
    if (orders_.reason == 0 && !writes) call.failed = false;
    calls_.push_back(call);
    if (!orders_.log.empty()) log(call);
    if (!call.failed) return Fate::works;
    errno = orders_.reason;
    return orders_.reason == 0 ? Fate::half : Fate::fails;
  }

 private:
  Disk() {
    const std::string below = variable("DISK_FAULTS_BELOW");
    if (below.empty()) return;
    orders_ = {.below = below,
               .call = std::atoll(variable("DISK_FAULTS_CALL").c_str()),
               .reason = reason_called(variable("DISK_FAULTS_KIND")),
               .lasts = variable("DISK_FAULTS_LASTS") == "1",
               .log = variable("DISK_FAULTS_LOG")};
    active_ = true;
  }

  static std::string absolute(const char* path) {
    if (path[0] == '/') return path;
    std::array<char, 4096> folder{};
    return ::getcwd(folder.data(), folder.size()) == nullptr ? path : std::string(folder.data()) + "/" + path;
  }

  void log(const Call& call) const {
    const std::string line =
        call.name + " " + call.path + (call.other.empty() ? "" : " " + call.other) + (call.failed ? " FAILS\n" : "\n");
    static auto* const real_open = next<int(const char*, int, ...)>("open");
    static auto* const real_write = next<ssize_t(int, const void*, std::size_t)>("write");
    static auto* const real_close = next<int(int)>("close");
    const int file = real_open(orders_.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0) return;
    [[maybe_unused]] const ssize_t written = real_write(file, line.data(), line.size());
    real_close(file);
  }

  std::mutex mutex_;
  bool active_ = false;
  Orders orders_;
  std::vector<Call> calls_;
  std::map<int, std::string> paths_;
};

bool is_counted(int flags) {
  return (flags & O_ACCMODE) != O_RDONLY || (flags & O_DIRECTORY) != 0;
}

template <class Open>
int open_below(const char* path, int flags, const Open& real) {
  Disk& disk = Disk::get();
  if (!is_counted(flags) || !disk.is_below(path)) return real();
  const bool is_new = (flags & O_CREAT) != 0 && ::access(path, F_OK) != 0;
  if (disk.fate(is_new ? "create" : "open", path) == Fate::fails) return -1;
  const int file = real();
  if (file >= 0) disk.opened(file, path);
  return file;
}

// Of a call on a file: `real`, unless the file is one of ours and the call is to fail.
template <class Real>
auto on_file(const char* name, int file, const Real& real) -> decltype(real()) {
  const std::optional<std::string> path = Disk::get().path_of(file);
  if (path && Disk::get().fate(name, *path) == Fate::fails) return -1;
  return real();
}

mode_t mode_in(int flags, va_list rest) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
}

}  // namespace

void begin(const Orders& orders) {
  Disk::get().begin(orders);
}

std::vector<Call> end() {
  return Disk::get().end();
}

}  // namespace routing::disk_faults

// The system's names and its signatures.
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name,cert-dcl50-cpp)
using namespace routing::disk_faults;

extern "C" {

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_in(flags, rest);
  va_end(rest);
  static auto* const real = next<int(const char*, int, ...)>("open");
  return open_below(path, flags, [&] { return real(path, flags, mode); });
}

int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_in(flags, rest);
  va_end(rest);
  static auto* const real = next<int(const char*, int, ...)>("open64");
  return open_below(path, flags, [&] { return real(path, flags, mode); });
}

ssize_t write(int file, const void* bytes, size_t count) {
  static auto* const real = next<ssize_t(int, const void*, std::size_t)>("write");
  const auto path = Disk::get().path_of(file);
  const Fate fate = path ? Disk::get().fate("write", *path) : Fate::works;
  if (fate == Fate::fails) return -1;
  return real(file, bytes, fate == Fate::half ? (count + 1) / 2 : count);
}

ssize_t pwrite(int file, const void* bytes, size_t count, off_t place) {
  static auto* const real = next<ssize_t(int, const void*, std::size_t, off_t)>("pwrite");
  const auto path = Disk::get().path_of(file);
  const Fate fate = path ? Disk::get().fate("pwrite", *path) : Fate::works;
  if (fate == Fate::fails) return -1;
  return real(file, bytes, fate == Fate::half ? (count + 1) / 2 : count, place);
}

int fsync(int file) {
  static auto* const real = next<int(int)>("fsync");
  return on_file("fsync", file, [&] { return real(file); });
}

int fdatasync(int file) {
  static auto* const real = next<int(int)>("fdatasync");
  return on_file("fdatasync", file, [&] { return real(file); });
}

int ftruncate(int file, off_t size) noexcept {
  static auto* const real = next<int(int, off_t)>("ftruncate");
  return on_file("ftruncate", file, [&] { return real(file, size); });
}

// A file is closed even where close() says that something failed.
int close(int file) {
  static auto* const real = next<int(int)>("close");
  const auto path = Disk::get().path_of(file);
  const Fate fate = path ? Disk::get().fate("close", *path) : Fate::works;
  const int reason = errno;
  Disk::get().closed(file);
  const int result = real(file);
  if (fate != Fate::fails) return result;
  errno = reason;
  return -1;
}

int rename(const char* from, const char* to) noexcept {
  static auto* const real = next<int(const char*, const char*)>("rename");
  if (Disk::get().is_below(from) && Disk::get().fate("rename", from, to) == Fate::fails) return -1;
  return real(from, to);
}

int mkdir(const char* path, mode_t mode) noexcept {
  static auto* const real = next<int(const char*, mode_t)>("mkdir");
  if (Disk::get().is_below(path) && Disk::get().fate("mkdir", path) == Fate::fails) return -1;
  return real(path, mode);
}

}  // extern "C"
// NOLINTEND(readability-inconsistent-declaration-parameter-name,cert-dcl50-cpp)
