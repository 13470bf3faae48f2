// CIFAR-10 in its binary version: 60,000 images of 32 x 32 pixels.
//
// A file is a row of records of 3073 bytes: a label from 0 to 9, then 1024 reds, 1024 greens and 1024 blues. Labels are
// checked, as they tell a foreign file, and dropped: the model learns images only.
#pragma once

#include "routing/data/sources/source.h"

#include <filesystem>
#include <memory>

namespace routing {

// The path is a folder with data_batch_1.bin … data_batch_5.bin (the part train) and test_batch.bin (the part test), or
// one that has these in a folder cifar-10-batches-bin, or one of the files. Any of the files may be absent or have
// fewer records; facts().missing then says so. There is no part valid: cut it from train if you need one.
//
// Throws  FileError  no such file, or a file that is no whole number of records; while reading, a label above 9
std::unique_ptr<ImageSource> open_cifar10(const std::filesystem::path& path);

}  // namespace routing
