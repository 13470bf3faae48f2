// Folders of PNG files of one size, one folder for each part.
#pragma once

#include "routing/data/sources/source.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace routing {

// The names of the PNG files in a folder in the order of their bytes, which no language setting changes.
//
// A million paths would take some 300 MB; the names alone, one after the other, take 30.
class PngNames {
 public:
  // Lists the folder and opens no file. Names end in .png in any case; hidden ones (as "._a.png", which macOS leaves
  // behind) are passed over, and so are folders.
  //
  // Throws  FileError  the folder cannot be read or has no PNG file
  explicit PngNames(std::filesystem::path folder);

  std::int64_t size() const { return static_cast<std::int64_t>(begins_.size()); }
  std::filesystem::path operator[](std::int64_t index) const;
  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
  std::string letters_;                // every name, with a zero after it
  std::vector<std::uint64_t> begins_;  // where each name begins, sorted by name
};

// Reads every image of a part in the order of names. Opening lists the folders and reads the header of the first image
// of each.
//
// facts().parts[…].files is the folder, not its files: see PngNames.
//
// Throws  FileError  as PngNames and read_png; or an image has another size than the first one
class PngFolders : public ImageSource {
 public:
  struct Part {
    std::string name;
    std::filesystem::path folder;
  };
  // The parts in the order of SourceFacts; at least one.
  PngFolders(std::string format, const std::vector<Part>& parts);

  const SourceFacts& facts() const override { return facts_; }
  ImageShape shape() const override { return shape_; }
  std::int64_t images(std::string_view part) const override;
  void read(std::string_view part, const ImageSink& sink) const override;

  void set_missing(std::string missing) { facts_.missing = std::move(missing); }
  // The one that decided on the size.
  std::filesystem::path first_image() const { return names_.at(facts_.parts.front().name)[0]; }

 private:
  void require_size(const ImageShape& found, const std::filesystem::path& path) const;

  SourceFacts facts_;
  ImageShape shape_;
  std::map<std::string, PngNames, std::less<>> names_;
};

}  // namespace routing
