// ImageNet shrunk to 64 x 64 pixels, in the two versions that are about.
//
//   van den Oord  folders train_64x64 and valid_64x64 of PNG files; whole: 1,281,149 and 49,999 images
//   Chrabaszcz    train_data_batch_1.npz … train_data_batch_10.npz and val_data.npz; whole: 1,281,167 and 50,000
#pragma once

#include "routing/data/sources/source.h"

#include <filesystem>
#include <memory>

namespace routing {

// The path is a folder with one of these versions, whole or in part, or a single .npz file. A folder that has both
// gives the PNG files.
//
// ImageNet's test images were never given out with these versions, so papers report their results on the validation
// images. That is why these are the part test, and who needs a part valid cuts it from train. If there are only
// validation images, they are the part train and the caller cuts all parts from them; facts().missing says what is not
// there: "no train_64x64, 600 of 49999 valid images".
//
// Throws  FileError  as PngFolders or NpzRows; or neither version is there; or images are not 64 x 64
std::unique_ptr<ImageSource> open_imagenet64(const std::filesystem::path& path);

}  // namespace routing
