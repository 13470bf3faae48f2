#include "lab/runs/zip_folder.h"

#include "routing/core/error.h"

#include <algorithm>
#include <memory>
#include <system_error>
#include <vector>
#include <zip.h>

namespace routing {
namespace {

namespace fs = std::filesystem;

struct DiscardArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};

void add_file(zip_t* archive, const fs::path& file, const std::string& name, const fs::path& path) {
  zip_source_t* const source = zip_source_file(archive, file.c_str(), 0, -1);
  const zip_int64_t index =
      source == nullptr ? -1 : zip_file_add(archive, name.c_str(), source, ZIP_FL_ENC_UTF_8 | ZIP_FL_OVERWRITE);
  if (index < 0) zip_source_free(source);
  require<FileError>(index >= 0, path.string(), ": ", name, " cannot be added: ", zip_strerror(archive));
  // Weights hardly get smaller, and unpacked files should not take a minute.
  zip_set_file_compression(archive, static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0);
}

}  // namespace

void write_zip(const fs::path& path, const fs::path& folder, const std::string& top) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  const std::string part = folder.string() + ".zip";
  int code = 0;
  std::unique_ptr<zip_t, DiscardArchive> archive(zip_open(part.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code));
  require<FileError>(archive != nullptr, path.string(), ": cannot be written (libzip's error ", code,
                     "); see that the folder can be written");
  for (const fs::path& file : files) add_file(archive.get(), file, top + "/" + file.filename().string(), path);
  // Only now are the files read and the archive written.
  const bool written = zip_close(archive.get()) == 0;
  std::error_code error;
  if (!written) {
    const std::string reason = zip_strerror(archive.get());
    fs::remove(part, error);
    throw FileError(path.string() + ": cannot be written: " + reason + "; see that there is space left");
  }
  archive.release();
  fs::rename(part, path, error);
  require<FileError>(!error, path.string(), ": cannot be put in place: ", error.message(),
                     "; see that the folder can be written");
}

}  // namespace routing
