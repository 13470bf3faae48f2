#include "routing/interchange/bundle/tensor_bundle.h"

#include "routing/core/error.h"
#include "routing/interchange/bundle/sorted_table.h"
#include "routing/interchange/bundle/wire_format.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <system_error>

static_assert(std::endian::native == std::endian::little, "numbers in checkpoints are little-endian");

namespace routing {
namespace {

namespace fs = std::filesystem;

// DataType of TensorFlow's types.proto.
struct TypeNumber {
  std::uint64_t number;
  NumberType type;
};
constexpr std::array kTypes{TypeNumber{1, NumberType::float32},   TypeNumber{2, NumberType::float64},
                            TypeNumber{3, NumberType::int32},     TypeNumber{4, NumberType::uint8},
                            TypeNumber{5, NumberType::int16},     TypeNumber{6, NumberType::int8},
                            TypeNumber{9, NumberType::int64},     TypeNumber{10, NumberType::boolean},
                            TypeNumber{14, NumberType::bfloat16}, TypeNumber{19, NumberType::float16}};

// Fields of BundleHeaderProto, VersionDef, BundleEntryProto, TensorShapeProto and its Dim.
enum HeaderField : std::uint32_t { kNumShards = 1, kEndianness = 2, kVersion = 3 };
enum VersionField : std::uint32_t { kProducer = 1, kMinConsumer = 2 };
enum EntryField : std::uint32_t {
  kType = 1,
  kShape = 2,
  kShard = 3,
  kOffset = 4,
  kSize = 5,
  kChecksum = 6,
  kSlices = 7
};
enum ShapeField : std::uint32_t { kDimension = 2, kUnknownRank = 3 };
constexpr std::uint32_t kDimensionSize = 1;

constexpr std::uint64_t kBundleVersion = 1;
constexpr std::uint64_t kMostShards = 99'999;  // five digits in the names of files
constexpr std::size_t kMostDimensions = 254;   // TensorFlow's own limit

ByteCursor cursor_of(std::string_view text, const std::string& where) {
  return {std::as_bytes(std::span<const char>(text.data(), text.size())), where};
}

template <class Visit>
void for_each_field(std::string_view text, const std::string& where, const Visit& visit) {
  ByteCursor cursor = cursor_of(text, where);
  while (cursor.left() > 0) visit(next_field(cursor));
}

Dimensions read_shape(std::string_view text, const std::string& where) {
  Dimensions dimensions;
  for_each_field(text, where, [&](const WireField& field) {
    require<FileError>(field.field != kUnknownRank || field.number == 0, where,
                       ": has no known rank; the file is damaged, fetch it again");
    if (field.field != kDimension) return;
    std::int64_t size = 0;
    for_each_field(field.text, where, [&](const WireField& part) {
      if (part.field == kDimensionSize) size = static_cast<std::int64_t>(part.number);
    });
    dimensions.push_back(size);
    require<FileError>(dimensions.size() <= kMostDimensions, where, ": has more than ", kMostDimensions,
                       " dimensions; the file is damaged, fetch it again");
  });
  return dimensions;
}

BundleVariable read_entry(const std::string& text, const std::string& where) {
  BundleVariable variable;
  for_each_field(text, where, [&](const WireField& field) {
    switch (field.field) {
      case kType:
        variable.type_number = field.number;
        break;
      case kShape:
        variable.dimensions = read_shape(field.text, where);
        break;
      case kShard:
        variable.shard = field.number;
        break;
      case kOffset:
        variable.offset = field.number;
        break;
      case kSize:
        variable.size = field.number;
        break;
      case kChecksum:
        variable.checksum = static_cast<std::uint32_t>(field.number);
        break;
      case kSlices:
        variable.partitioned = true;
        break;
      default:
        break;
    }
  });
  for (const TypeNumber& known : kTypes) {
    if (known.number == variable.type_number) variable.type = known.type;
  }
  return variable;
}

fs::path with_suffix(const fs::path& prefix, const std::string& suffix) {
  return prefix.string() + suffix;
}

fs::path shard_path(const fs::path& prefix, std::uint64_t shard, std::uint64_t shards) {
  std::array<char, 64> suffix{};
  std::snprintf(suffix.data(), suffix.size(), ".data-%05llu-of-%05llu", static_cast<unsigned long long>(shard),
                static_cast<unsigned long long>(shards));
  return with_suffix(prefix, suffix.data());
}

std::string header_text() {
  std::string version;
  append_number_field(version, kProducer, kBundleVersion);
  std::string header;
  append_number_field(header, kNumShards, 1);
  append_text_field(header, kVersion, version);
  return header;
}

std::string entry_text(const BundleTensor& tensor, std::uint64_t offset) {
  std::string shape;
  for (const std::int64_t size : tensor.dimensions) {
    std::string dimension;
    append_number_field(dimension, kDimensionSize, static_cast<std::uint64_t>(size));
    append_text_field(shape, kDimension, dimension);
  }
  const auto* const known =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeNumber& each) { return each.type == tensor.type; });
  std::string entry;
  append_number_field(entry, kType, known->number);
  append_text_field(entry, kShape, shape);
  append_number_field(entry, kOffset, offset);
  append_number_field(entry, kSize, tensor.bytes.size());
  append_fixed32_field(entry, kChecksum, masked_crc32c(tensor.bytes));
  return entry;
}

}  // namespace

fs::path bundle_prefix(const fs::path& path) {
  std::error_code ignored;
  if (path.extension() == ".index" && fs::is_regular_file(path, ignored)) return fs::path(path).replace_extension();
  if (fs::is_regular_file(with_suffix(path, ".index"), ignored)) return path;
  require<FileError>(fs::is_directory(path, ignored), path.string(),
                     ": is no checkpoint of TensorFlow: neither it nor ", with_suffix(path, ".index").string(),
                     " is there; name what stands before .index");
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(path, ignored)) {
    if (entry.path().extension() == ".index") found.push_back(fs::path(entry.path()).replace_extension());
  }
  std::sort(found.begin(), found.end());
  std::string names;
  for (const fs::path& each : found) names += (names.empty() ? "" : ", ") + each.filename().string();
  require<FileError>(!found.empty(), path.string(),
                     ": holds no *.index, so there is no checkpoint of TensorFlow in it");
  require<FileError>(found.size() == 1, path.string(), ": holds ", found.size(), " checkpoints (", names,
                     "); name one of them");
  return found.front();
}

TensorBundle::TensorBundle(const fs::path& prefix) : prefix_(prefix), where_(with_suffix(prefix, ".index").string()) {
  const MappedFile index(where_);
  const TableEntries entries = read_sorted_table(index.bytes(), where_);
  require<FileError>(!entries.empty() && entries.front().first.empty(), where_,
                     ": has no header, so it is not the .index of a TensorFlow checkpoint");
  read_header(entries.front().second);
  for (std::size_t place = 1; place < entries.size(); ++place) {
    const auto& [name, text] = entries[place];
    variables_.emplace(name, read_entry(text, where_ + ": variable '" + name + "'"));
  }
}

void TensorBundle::read_header(const std::string& text) {
  std::uint64_t shards = 0, big_endian = 0, min_consumer = 0;
  for_each_field(text, where_, [&](const WireField& field) {
    if (field.field == kNumShards) shards = field.number;
    if (field.field == kEndianness) big_endian = field.number;
    if (field.field != kVersion) return;
    for_each_field(field.text, where_, [&](const WireField& part) {
      if (part.field == kMinConsumer) min_consumer = part.number;
    });
  });
  require<FileError>(big_endian == 0, where_,
                     ": its numbers are big-endian, but little-endian was expected; save it on another machine");
  require<FileError>(min_consumer <= kBundleVersion, where_, ": asks for readers of version ", min_consumer,
                     " of the format, but this one knows version ", kBundleVersion);
  require<FileError>(shards >= 1 && shards <= kMostShards, where_, ": says that there are ", shards,
                     " files of numbers, but 1 to ", kMostShards, " were expected; the file is damaged");
  for (std::uint64_t shard = 0; shard < shards; ++shard) shards_.emplace_back(shard_path(prefix_, shard, shards));
}

std::span<const std::byte> TensorBundle::bytes(const std::string& name) const {
  const auto found = variables_.find(name);
  const std::string where = where_ + ": variable '" + name + "'";
  require<FileError>(found != variables_.end(), where, " is not there");
  const BundleVariable& variable = found->second;
  require<FileError>(variable.type.has_value(), where, ": is of TensorFlow's type ", variable.type_number,
                     ", which is not one of numbers that can be read here");
  require<FileError>(!variable.partitioned, where,
                     ": is stored in slices; save the checkpoint again from a graph without partitioned variables");
  const std::optional<std::uint64_t> count = count_of(variable.dimensions);
  require<FileError>(count.has_value() && variable.size / bytes_of(*variable.type) == *count &&
                         variable.size % bytes_of(*variable.type) == 0,
                     where, ": is ", name_of(*variable.type), " ", dimensions_text(variable.dimensions), " but has ",
                     variable.size, " bytes; the file is damaged, fetch it again");
  require<FileError>(variable.shard < shards_.size(), where, ": lies in file ", variable.shard, ", but there are ",
                     shards_.size(), "; the file is damaged, fetch it again");
  const std::span<const std::byte> file = shards_[variable.shard].bytes();
  const std::string data = shard_path(prefix_, variable.shard, shards_.size()).string();
  require<FileError>(variable.offset <= file.size() && variable.size <= file.size() - variable.offset, data,
                     ": variable '", name, "' has ", variable.size, " bytes at byte ", variable.offset,
                     ", but the file has ", file.size(), "; it is cut off, fetch it again");
  const std::span<const std::byte> bytes = file.subspan(variable.offset, variable.size);
  const std::uint32_t computed = masked_crc32c(bytes);
  require<FileError>(computed == variable.checksum, data, ": variable '", name, "' has checksum ", computed, ", but ",
                     variable.checksum, " was stored; the file is damaged, fetch it again");
  return bytes;
}

void write_tensor_bundle(const fs::path& prefix, std::vector<BundleTensor> tensors) {
  std::sort(tensors.begin(), tensors.end(),
            [](const BundleTensor& left, const BundleTensor& right) { return left.name < right.name; });
  TableEntries entries{{"", header_text()}};
  std::uint64_t offset = 0;
  for (const BundleTensor& tensor : tensors) {
    const std::optional<std::uint64_t> count = count_of(tensor.dimensions);
    require<InputError>(!tensor.name.empty() && tensor.name != entries.back().first, "variable '", tensor.name,
                        "' comes twice or has no name; every variable of a checkpoint has a name of its own");
    require<InputError>(count.has_value() && tensor.bytes.size() == *count * bytes_of(tensor.type), "variable '",
                        tensor.name, "' is ", name_of(tensor.type), " ", dimensions_text(tensor.dimensions),
                        " but has ", tensor.bytes.size(), " bytes");
    entries.emplace_back(tensor.name, entry_text(tensor, offset));
    offset += tensor.bytes.size();
  }
  AtomicFile data(shard_path(prefix, 0, 1));
  for (const BundleTensor& tensor : tensors) data.write(tensor.bytes);
  data.commit();
  write_file_at_once(with_suffix(prefix, ".index"), sorted_table(entries));
}

}  // namespace routing
