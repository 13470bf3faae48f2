// A checkpoint of TensorFlow ("tensor bundle") read and written without TensorFlow. Knows no torch.
//
//   PREFIX.index                   a sorted table: "" holds the header, every other key is the name of a variable with
//                                  its type, shape, place and checksum
//   PREFIX.data-00000-of-00001     the numbers, one variable after the other; large checkpoints have several such files
#pragma once

#include "routing/core/files.h"
#include "routing/interchange/values/foreign_tensor.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace routing {

struct BundleVariable {
  std::optional<NumberType> type = std::nullopt;  // absent if it is none of ours, such as text
  std::uint64_t type_number = 0;                  // TensorFlow's
  Dimensions dimensions = {};
  bool partitioned = false;  // its numbers are entries of their own
  std::uint64_t shard = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint32_t checksum = 0;
};

// PREFIX of what a user names: PREFIX itself, PREFIX.index, or a folder with a single *.index. Throws a FileError that
// lists what there is.
std::filesystem::path bundle_prefix(const std::filesystem::path& path);

class TensorBundle {
 public:
  // Reads and checks the index; numbers are mapped and come from the disk when they are touched.
  explicit TensorBundle(const std::filesystem::path& prefix);

  const std::map<std::string, BundleVariable>& variables() const { return variables_; }
  // The numbers of a variable, row by row, little-endian. Throws a FileError if there is no such variable, its bytes
  // are not all there or their checksum does not fit.
  std::span<const std::byte> bytes(const std::string& name) const;

 private:
  void read_header(const std::string& text);

  std::filesystem::path prefix_;
  std::string where_;
  std::vector<MappedFile> shards_;
  std::map<std::string, BundleVariable> variables_;
};

struct BundleTensor {
  std::string name = {};
  NumberType type = NumberType::float32;
  Dimensions dimensions = {};
  std::span<const std::byte> bytes = {};
};

// Writes both files, the index last; each appears in one step. Throws an InputError for two tensors of one name, an
// empty name, or bytes that are not those of the shape.
void write_tensor_bundle(const std::filesystem::path& prefix, std::vector<BundleTensor> tensors);

}  // namespace routing
