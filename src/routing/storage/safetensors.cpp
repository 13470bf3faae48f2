#include "routing/storage/safetensors.h"

#include "routing/core/error.h"
#include "routing/core/files.h"
#include "routing/core/utf8.h"
#include "routing/storage/safetensors_header.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <vector>

namespace routing {
namespace {

static_assert(std::endian::native == std::endian::little,
              "values are copied as they are, and the format is little-endian");

// The data then begins where every value type may.
constexpr std::size_t kHeaderPadding = 8;

struct DtypeName {
  at::ScalarType type;
  const char* name;
};

constexpr auto kDtypes = std::to_array<DtypeName>({
    {at::kBool, "BOOL"},
    {at::kByte, "U8"},
    {at::kChar, "I8"},
    {at::kShort, "I16"},
    {at::kInt, "I32"},
    {at::kLong, "I64"},
    {at::kHalf, "F16"},
    {at::kBFloat16, "BF16"},
    {at::kFloat, "F32"},
    {at::kDouble, "F64"},
});

at::ScalarType type_of(const SafetensorsEntry& entry) {
  const auto* const found =
      std::find_if(kDtypes.begin(), kDtypes.end(), [&](const DtypeName& dtype) { return dtype.name == entry.dtype; });
  require<Error>(found != kDtypes.end(), "dtype ", entry.dtype, " passed the check of the header but has no tensors");
  return found->type;
}

std::uint64_t num_bytes(const at::Tensor& tensor) {
  return static_cast<std::uint64_t>(tensor.numel()) * tensor.element_size();
}

// A tensor to be written and its place in the memory of this process.
struct Piece {
  const std::string* name = nullptr;
  const at::Tensor* tensor = nullptr;
  const char* dtype = nullptr;
  const char* first = nullptr;
  const char* last = nullptr;  // one past
};

Piece piece_of(const std::filesystem::path& path, const std::string& name, const at::Tensor& tensor) {
  const std::string about = path.string() + ": tensor " + quoted_name(name);
  require<FileError>(name != kSafetensorsMetadataKey, about, " has a name that the format keeps for itself; rename it");
  require<FileError>(!first_invalid_utf8(name), about, " has a name that is not UTF-8; rename it");
  require<FileError>(tensor.defined(), about, " is undefined; leave it out or give it values");
  require<FileError>(tensor.layout() == at::kStrided, about, " is sparse; make it dense before writing");
  const auto* const found = std::find_if(kDtypes.begin(), kDtypes.end(),
                                         [&](const DtypeName& dtype) { return dtype.type == tensor.scalar_type(); });
  require<FileError>(
      found != kDtypes.end(), about, " has dtype ", c10::toString(tensor.scalar_type()),
      ", which cannot be stored; convert it to bool, uint8, int8 to int64, float16, bfloat16, float32 or "
      "float64");
  Piece piece = {.name = &name, .tensor = &tensor, .dtype = found->name};
  if (tensor.numel() == 0) return piece;
  std::int64_t span = 1;
  for (std::int64_t axis = 0; axis < tensor.dim(); ++axis) span += (tensor.size(axis) - 1) * tensor.stride(axis);
  piece.first = static_cast<const char*>(tensor.data_ptr());
  piece.last = piece.first + span * static_cast<std::int64_t>(tensor.element_size());
  return piece;
}

void require_apart(const std::filesystem::path& path, std::vector<Piece> pieces) {
  std::stable_sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.first < b.first; });
  const Piece* furthest = nullptr;
  for (const Piece& piece : pieces) {
    if (piece.first == nullptr) continue;
    require<FileError>(furthest == nullptr || piece.first >= furthest->last, path.string(), ": tensors ",
                       quoted_name(*(furthest == nullptr ? piece : *furthest).name), " and ", quoted_name(*piece.name),
                       " share memory and would be two after reading; store one and note the tie in the metadata");
    if (furthest == nullptr || piece.last > furthest->last) furthest = &piece;
  }
}

std::string header_of(const std::filesystem::path& path, const std::vector<Piece>& pieces,
                      const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  for (const auto& [key, text] : metadata) {
    require<FileError>(!first_invalid_utf8(key) && !first_invalid_utf8(text), path.string(), ": metadata ",
                       quoted_name(key), " is not UTF-8; store only text, other things as tensors");
  }
  if (!metadata.empty()) header[std::string(kSafetensorsMetadataKey)] = metadata;
  std::uint64_t begin = 0;
  for (const Piece& piece : pieces) {
    const std::uint64_t end = begin + num_bytes(*piece.tensor);
    header[*piece.name] = {
        {"dtype", piece.dtype}, {"shape", piece.tensor->sizes().vec()}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string text = header.dump();
  text.append((kHeaderPadding - text.size() % kHeaderPadding) % kHeaderPadding, ' ');
  require<FileError>(text.size() <= kMaxSafetensorsHeaderBytes, path.string(), ": the header would have ", text.size(),
                     " bytes, more than the allowed ", kMaxSafetensorsHeaderBytes,
                     "; store fewer tensors or less metadata in one file");
  return text;
}

at::Tensor tensor_of(const std::filesystem::path& path, const SafetensorsEntry& entry,
                     std::span<const std::byte> data) {
  at::Tensor tensor = at::empty(entry.shape, type_of(entry));
  if (data.empty()) return tensor;
  if (tensor.scalar_type() == at::kBool) {
    const auto* const wrong = std::find_if(data.data(), data.data() + data.size(),
                                           [](std::byte byte) { return std::to_integer<int>(byte) > 1; });
    require<FileError>(wrong == data.data() + data.size(), path.string(), ": tensor ", quoted_name(entry.name),
                       " is BOOL but holds a byte other than 0 and 1 at its place ", wrong - data.data(),
                       "; the file is damaged, copy or write it anew");
  }
  std::memcpy(tensor.data_ptr(), data.data(), data.size());
  return tensor;
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, const TensorFile& file) {
  std::vector<Piece> pieces;
  pieces.reserve(file.tensors.size());
  for (const auto& [name, tensor] : file.tensors) pieces.push_back(piece_of(path, name, tensor));
  require_apart(path, pieces);
  // By name already: the map is sorted.
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const Piece& a, const Piece& b) { return a.tensor->element_size() > b.tensor->element_size(); });
  const std::string header = header_of(path, pieces, file.metadata);
  const std::uint64_t length = header.size();
  AtomicFile target(path);
  target.write(std::as_bytes(std::span(&length, 1)));
  target.write(std::as_bytes(std::span(header.data(), header.size())));
  for (const Piece& piece : pieces) {
    const at::Tensor dense = piece.tensor->detach().resolve_neg().cpu().contiguous();
    target.write({static_cast<const std::byte*>(dense.data_ptr()), num_bytes(dense)});
  }
  target.commit();
}

TensorFile read_safetensors(const std::filesystem::path& path) {
  const MappedFile mapped(path);
  SafetensorsHeader header = parse_safetensors_header(path, mapped.bytes());
  const std::span<const std::byte> data = mapped.bytes().subspan(header.data_begin);
  TensorFile file;
  for (const SafetensorsEntry& entry : header.entries) {
    file.tensors.emplace(entry.name, tensor_of(path, entry, data.subspan(entry.begin, entry.end - entry.begin)));
  }
  file.metadata = std::move(header.metadata);
  return file;
}

std::map<std::string, std::string> read_safetensors_metadata(const std::filesystem::path& path) {
  const MappedFile mapped(path);
  return parse_safetensors_header(path, mapped.bytes()).metadata;
}

}  // namespace routing
