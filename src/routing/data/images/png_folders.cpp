#include "routing/data/images/png_folders.h"

#include "routing/core/error.h"
#include "routing/data/images/image.h"
#include "routing/data/images/png_image.h"

#include <algorithm>
#include <cctype>
#include <system_error>
#include <utility>

namespace routing {
namespace {

bool is_png_name(std::string_view name) {
  constexpr std::string_view kEnding = ".png";
  if (name.size() <= kEnding.size() || name.front() == '.') return false;
  return std::equal(kEnding.begin(), kEnding.end(), name.end() - kEnding.size(), [](char expected, char found) {
    return expected == std::tolower(static_cast<unsigned char>(found));
  });
}

}  // namespace

PngNames::PngNames(std::filesystem::path folder) : folder_(std::move(folder)) {
  std::error_code failure;
  std::filesystem::directory_iterator entry(folder_, failure);
  const std::filesystem::directory_iterator end;
  for (; !failure && entry != end; entry.increment(failure)) {
    const std::string name = entry->path().filename().string();
    std::error_code unknown;
    if (!is_png_name(name) || entry->is_directory(unknown)) continue;
    begins_.push_back(letters_.size());
    letters_.append(name.c_str(), name.size() + 1);
  }
  require<FileError>(!failure, folder_.string(), ": cannot be listed: ", failure.message(),
                     "; name a folder that you may read");
  require<FileError>(!begins_.empty(), folder_.string(), ": has no PNG image in it; put files *.png there");
  std::sort(begins_.begin(), begins_.end(), [this](std::uint64_t left, std::uint64_t right) {
    return std::string_view(&letters_[left]) < std::string_view(&letters_[right]);
  });
  letters_.shrink_to_fit();
  begins_.shrink_to_fit();
}

std::filesystem::path PngNames::operator[](std::int64_t index) const {
  return folder_ / &letters_[begins_.at(static_cast<std::size_t>(index))];
}

PngFolders::PngFolders(std::string format, const std::vector<Part>& parts) {
  require<InputError>(!parts.empty(), "a source of images needs at least one part");
  facts_.format = std::move(format);
  for (const Part& part : parts) {
    facts_.parts.push_back({.name = part.name, .files = {part.folder}});
    const PngNames& names = names_.emplace(part.name, PngNames(part.folder)).first->second;
    const ImageShape found = read_png_shape(names[0]);
    if (facts_.parts.size() == 1) shape_ = found;
    require_size(found, names[0]);
  }
}

std::int64_t PngFolders::images(std::string_view part) const {
  return names_.at(require_part(facts_, part).name).size();
}

void PngFolders::read(std::string_view part, const ImageSink& sink) const {
  const PngNames& names = names_.at(require_part(facts_, part).name);
  for (std::int64_t index = 0; index < names.size(); ++index) {
    const std::filesystem::path path = names[index];
    const Image image = read_png(path);
    require_size(image.shape, path);
    sink(image.values);
  }
}

void PngFolders::require_size(const ImageShape& found, const std::filesystem::path& path) const {
  require<FileError>(found == shape_, path.string(), ": is ", to_string(found), " pixels, but ", to_string(shape_),
                     " were expected as in ", first_image().string(),
                     "; bring all images to one size (height x width), or move this one elsewhere");
}

}  // namespace routing
