#include "routing/data/images/image_folder.h"

#include "routing/core/error.h"
#include "routing/data/images/image.h"
#include "routing/data/images/png_folders.h"

namespace routing {

std::unique_ptr<ImageSource> open_image_folder(const std::filesystem::path& folder) {
  std::vector<PngFolders::Part> parts;
  const auto add = [&](const char* part, const char* name) {
    if (!is_folder(folder / name)) return;
    require<FileError>(parts.empty() || parts.back().name != part, folder.string(), ": has both ",
                       parts.empty() ? "" : parts.back().folder.filename().string(), " and ", name,
                       ", but only one folder can be the part valid; move the other one elsewhere");
    parts.push_back({.name = part, .folder = folder / name});
  };
  add("train", "train");
  add("valid", "valid");
  add("valid", "validation");
  add("valid", "val");
  add("test", "test");
  if (parts.empty()) parts.push_back({.name = "train", .folder = folder});
  return std::make_unique<PngFolders>("images", parts);
}

}  // namespace routing
