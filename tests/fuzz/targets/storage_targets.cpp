// Models: safetensors.
#include "fuzz/scratch_files.h"
#include "fuzz/targets.h"
#include "lab/runs/model_header.h"
#include "routing/config/toml.h"
#include "routing/core/utf8.h"
#include "routing/storage/safetensors_header.h"
#include "routing/storage/safetensors_metadata.h"

#include <cstring>
#include <optional>

namespace routing::fuzz {
namespace {

std::string with_length(const std::string& json, const std::string& data) {
  const std::uint64_t length = json.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  return file + json + data;
}

// Half of the inputs are files as they are, half a header and data around which the length is put.
std::string file_from(Bytes bytes) {
  InputCutter input(bytes);
  if (input.byte() % 2 == 0) return input.rest();
  const std::string json = input.text(input.below(1U << 16U));
  return with_length(json, input.rest());
}

// What the header promises: the tensors fill the data without hole or overlap, and have as many bytes as values.
void check_header(const SafetensorsHeader& header, std::size_t file_bytes) {
  std::uint64_t end = 0;
  for (const SafetensorsEntry& entry : header.entries) {
    hold(!first_invalid_utf8(entry.name), "a name that is not UTF-8");
    hold(entry.begin == end && entry.end >= entry.begin, "a hole or an overlap before " + entry.name);
    end = entry.end;
    std::uint64_t values = 1;
    for (const std::int64_t size : entry.shape) values *= static_cast<std::uint64_t>(size);
    const std::optional<std::uint64_t> width = safetensors_value_bytes(entry.dtype);
    hold(!width || values * *width == entry.end - entry.begin, "another number of bytes than values in " + entry.name);
  }
  hold(header.data_begin + end == file_bytes, "data that no tensor has");
}

bool same_tensors(const SafetensorsHeader& one, const SafetensorsHeader& other) {
  if (one.entries.size() != other.entries.size()) return false;
  for (std::size_t index = 0; index < one.entries.size(); ++index) {
    const SafetensorsEntry &a = one.entries[index], &b = other.entries[index];
    if (a.name != b.name || a.dtype != b.dtype || a.shape != b.shape || a.begin != b.begin || a.end != b.end)
      return false;
  }
  return true;
}

void run_header(Bytes bytes) {
  const std::string file = file_from(bytes);
  takes([&] { check_header(parse_safetensors_header("model.safetensors", raw(file)), file.size()); });
}

void run_file(Bytes bytes) {
  const std::string file = file_from(bytes);
  const auto from = scratch_file("model.safetensors", file);
  const auto to = scratch_folder() / "copy.safetensors";
  takes([&] { read_model_header(from).config(); });
  if (!takes([&] { copy_safetensors(from, to, {{"note", "caf\xc3\xa9"}}); })) return;
  const std::string copy = bytes_of_file(to);
  SafetensorsHeader before = parse_safetensors_header(from, raw(file));
  const SafetensorsHeader after = parse_safetensors_header(to, raw(copy));
  before.metadata["note"] = "caf\xc3\xa9";
  hold(same_tensors(before, after) && before.metadata == after.metadata, "the copy has another header");
  hold(file.substr(before.data_begin) == copy.substr(after.data_begin), "the copy has other data");
}

std::vector<std::string> seeds() {
  const std::string odd(1, '\1'), even(1, '\0');
  const std::string json =
      R"({"__metadata__":{"format":"pt","note":"\u00e9\n"},"b":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("a.weight":{"dtype":"BF16","shape":[],"data_offsets":[24,26]},"e":{"dtype":"BOOL","shape":[0,7],"data_offsets":[26,26]}})";
  const std::string data(26, 'd');
  const auto framed = [&](const std::string& header, const std::string& tensors) {
    std::string tail(2, '\0');
    tail[0] = static_cast<char>(header.size() >> 8U);
    tail[1] = static_cast<char>(header.size() & 0xFFU);
    return header + tensors + tail + odd;
  };
  ExperimentConfig config;
  config.model.vocab_size = 256;
  std::string metadata =
      R"({"__metadata__":{"config":"name = \"x\"\n[model]\nlayers = 1\nvocab_size = 256\n[train]\nsteps = 5\n"},)";
  metadata += R"("w":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}})";
  return {
      with_length(json, data) + even, framed(json, data), framed(metadata, "12345678"), with_length("{}", "") + even,
      framed(R"({"x":{"dtype":"I64","shape":[4611686018427387904,4],"data_offsets":[0,18446744073709551615]}})", "")};
}

}  // namespace

FuzzTarget safetensors_header_target() {
  return {"safetensors_header", run_header, seeds};
}
FuzzTarget safetensors_file_target() {
  return {"safetensors_file", run_file, seeds};
}

}  // namespace routing::fuzz
