// Any folder of PNG images of one size.
#pragma once

#include "routing/data/sources/source.h"

#include <filesystem>
#include <memory>

namespace routing {

// A folder with folders train, valid (or validation, or val) and test in it has those of them that are there as parts;
// files beside them are not looked at. Every other folder is one part, train, from which the caller may cut others.
// Images come in the order of the bytes of their names; the first one decides on the size.
//
// Throws  FileError  as PngFolders; or more than one of valid, validation and val is there
std::unique_ptr<ImageSource> open_image_folder(const std::filesystem::path& folder);

}  // namespace routing
