// Checkpoints of TensorFlow.
#include "fuzz/scratch_files.h"
#include "fuzz/targets.h"
#include "routing/interchange/bundle/snappy.h"
#include "routing/interchange/bundle/sorted_table.h"
#include "routing/interchange/bundle/tensor_bundle.h"
#include "routing/interchange/bundle/wire_format.h"

#include <algorithm>
#include <map>

namespace routing::fuzz {
namespace {

std::string with_trailer(std::string block, char packing) {
  block += packing;
  append_fixed32(block, masked_crc32c(raw(block)));
  return block;
}

void append_place(std::string& text, std::size_t offset, std::size_t size) {
  append_varint(text, offset);
  append_varint(text, size);
}

// Blocks of any bytes with right checksums, and an index that names them.
std::string table_around(InputCutter& input) {
  std::string file, index, last_key;
  const std::size_t blocks = input.byte() % 4;
  for (std::size_t block = 0; block < blocks; ++block) {
    const std::uint8_t shape = input.byte();
    const std::string content = input.text(shape % 64 == 63 ? input.below(4096) : shape % 64);
    std::string place;
    append_place(place, file.size(), content.size());
    file += with_trailer(content, static_cast<char>(shape / 128));
    last_key += '~';
    append_varint(index, 0);
    append_varint(index, last_key.size());
    append_varint(index, place.size());
    index += last_key + place;
  }
  if (input.byte() % 4 == 0) index = input.rest();
  append_fixed32(index, 0);
  append_fixed32(index, 1);
  std::string footer;
  append_place(footer, file.size(), 0);
  file += with_trailer("", 0);
  append_place(footer, file.size(), index.size());
  file += with_trailer(index, 0);
  footer.resize(40, '\0');
  append_fixed32(footer, 0x8b80fb57U);
  append_fixed32(footer, 0xdb477524U);
  return file + footer;
}

void run_sorted_table(Bytes bytes) {
  InputCutter input(bytes);
  const std::string file = input.byte() % 4 == 0 ? input.rest() : table_around(input);
  takes([&] {
    const TableEntries entries = read_sorted_table(raw(file), "x.index");
    const bool ascend = std::is_sorted(entries.begin(), entries.end(),
                                       [](const auto& one, const auto& other) { return one.first < other.first; });
    hold(ascend, "keys that do not ascend");
    const std::string again = sorted_table(entries);
    hold(read_sorted_table(raw(again), "y.index") == entries, "written and read it is another table");
  });
}

void run_snappy(Bytes bytes) {
  takes([&] { hold(snappy_unpacked(raw(bytes), "x.index").size() <= std::size_t{64} << 20U, "more than 64 MiB"); });
}

// Entries of the index with any values, and a file of numbers: a line with a key, a byte with the length of its value.
void run_tensor_bundle(Bytes bytes) {
  InputCutter input(bytes);
  const std::string numbers = input.text(input.byte());
  std::map<std::string, std::string> index;
  while (!input.empty()) {
    const std::string key = input.text(input.byte() % 16);
    index[key] = input.text(input.byte());
  }
  scratch_file("bundle/x.index", sorted_table({index.begin(), index.end()}));
  scratch_file("bundle/x.data-00000-of-00001", numbers);
  takes([&] {
    const TensorBundle bundle(scratch_folder() / "bundle/x");
    for (const auto& entry : bundle.variables()) {
      const BundleVariable& variable = entry.second;
      takes([&] {
        const auto found = bundle.bytes(entry.first);
        const std::optional<std::uint64_t> count = count_of(variable.dimensions);
        hold(!variable.type || (count && *count * routing::bytes_of(*variable.type) == found.size()),
             "another number of bytes than numbers");
      });
    }
  });
}

const std::string kNumbers = literal("\0\0\x80?\0\0\0@");

std::vector<std::string> sorted_table_seeds() {
  const std::string whole = sorted_table({{"", "header"}, {"a/b", "x"}, {"a/c", "y"}});
  return {whole + '\0', sorted_table({}) + '\0', literal("\0\1\1ax\0\1\1by\0\0\0\0\1\0\0\0") + literal("\1\x12\1\1")};
}

std::vector<std::string> snappy_seeds() {
  return {literal("\x05\x10hello"),
          literal("\x0a\x00"
                  "a\x15\x01"),
          literal("\x14\x08"
                  "abc\x42\x03\x00"),
          literal("\x08\xf0\x02"
                  "abc\x0f\x03\0\0\0")};
}

std::vector<std::string> tensor_bundle_seeds() {
  write_tensor_bundle(scratch_folder() / "seed",
                      {{.name = "v", .type = NumberType::float32, .dimensions = {2}, .bytes = raw(kNumbers)}});
  const std::string file = bytes_of_file(scratch_folder() / "seed.index");
  std::string text, sizes;
  const TableEntries entries = read_sorted_table(raw(file), "seed");
  for (const auto& [key, value] : entries) {
    text += key + value;
    sizes = std::string(1, static_cast<char>(value.size())) + static_cast<char>(key.size()) + sizes;
  }
  return {kNumbers + text + sizes + '\x08'};
}

}  // namespace

FuzzTarget sorted_table_target() {
  return {"sorted_table", run_sorted_table, sorted_table_seeds};
}
FuzzTarget snappy_target() {
  return {"snappy", run_snappy, snappy_seeds};
}
FuzzTarget tensor_bundle_target() {
  return {"tensor_bundle", run_tensor_bundle, tensor_bundle_seeds};
}

}  // namespace routing::fuzz
