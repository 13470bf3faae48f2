// A file of torch.save(): a zip archive of a pickle and storages. Knows no torch, and runs nothing of the pickle
// (restricted_pickle.h).
//
//   NAME/data.pkl    the pickle
//   NAME/data/0 …    the storages; neither they nor the pickle are compressed
//   NAME/byteorder   "little", since torch 2.1
#pragma once

#include "routing/interchange/values/foreign_tensor.h"

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace routing {

struct TorchTensor {
  std::string name = {};
  NumberType type = NumberType::float32;
  Dimensions dimensions = {};
  std::vector<std::byte> bytes = {};  // row by row, without gaps
};

// The tensors of the state_dict in it, or of its entry of this name, in their order. Throws a FileError that says what
// was expected, what was found and what to do, for older formats too.
std::vector<TorchTensor> read_torch_archive(const std::filesystem::path& path, const std::string& entry = {});

}  // namespace routing
