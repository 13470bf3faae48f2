// Tensors in files: the safetensors format, which holds names, numbers and texts and nothing that could run.
#pragma once

#include <ATen/ATen.h>

#include <filesystem>
#include <map>
#include <string>

namespace routing {

struct TensorFile {
  std::map<std::string, at::Tensor> tensors = {};
  std::map<std::string, std::string> metadata = {};
};

// Writes the file in one step (see AtomicFile). The same tensors and metadata always give the same bytes: larger value
// types first, then by name; the header padded with spaces so that the data begins at a multiple of 8. Tensors may have
// any strides and are stored row by row.
//
// Refuses, naming the tensor: dtypes other than bool, uint8, int8 to int64, float16, bfloat16, float32, float64; sparse
// and undefined tensors; the name "__metadata__"; texts that are not UTF-8; and two tensors whose memory overlaps,
// because reading would make two of what was one. Store one of them and note in the metadata what it is tied to.
void write_safetensors(const std::filesystem::path& path, const TensorFile& file);

// Tensors of their own on the CPU, row by row in memory. The whole file is checked before the first tensor is made; see
// safetensors_header.h. In addition a BOOL must be 0 or 1.
TensorFile read_safetensors(const std::filesystem::path& path);

// Only the metadata. The header is checked all the same; the values are not read.
std::map<std::string, std::string> read_safetensors_metadata(const std::filesystem::path& path);

// Every error is a FileError that begins with the path and says what was expected, what was found and what to do.

}  // namespace routing
