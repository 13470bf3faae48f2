// Files of torch.save().
#include "data/images/zip_files.h"
#include "fuzz/scratch_files.h"
#include "fuzz/targets.h"
#include "routing/interchange/pickle/restricted_pickle.h"
#include "routing/interchange/pickle/torch_archive.h"

namespace routing::fuzz {
namespace {

void check(const PickledTensor& tensor) {
  const std::optional<std::uint64_t> count = count_of(tensor.dimensions);
  hold(count && tensor.dimensions.size() == tensor.strides.size(), "a tensor without a size: " + tensor.name);
  if (*count == 0) return;
  hold(*count <= tensor.storage_count, "more numbers than the storage has: " + tensor.name);
  // Sums of products of what is below the storage's count: 128 bits hold them.
  unsigned __int128 last = tensor.offset;
  for (std::size_t axis = 0; axis < tensor.dimensions.size(); ++axis) {
    hold(tensor.strides[axis] >= 0, "a negative stride: " + tensor.name);
    last +=
        static_cast<unsigned __int128>(tensor.dimensions[axis] - 1) * static_cast<std::uint64_t>(tensor.strides[axis]);
  }
  hold(last < tensor.storage_count, "a tensor beyond its storage: " + tensor.name);
}

void run_pickle(Bytes bytes) {
  for (const char* const entry : {"", "state_dict"}) {
    takes([&] {
      for (const PickledTensor& tensor : read_pickled_tensors(raw(bytes), "x.pt", entry)) check(tensor);
    });
  }
}

// A file as it is, or a pickle and two storages in a good archive.
void run_archive(Bytes bytes) {
  InputCutter input(bytes);
  std::string file;
  if (input.byte() % 4 == 0) {
    file = input.rest();
  } else {
    const std::size_t pickle = input.below(1U << 16U);
    const std::size_t first = input.byte();
    std::vector<ZipEntry> entries{{.name = "m/data.pkl", .content = input.text(pickle)}};
    entries.push_back({.name = "m/data/0", .content = input.text(first)});
    entries.push_back({.name = "m/data/1", .content = input.rest()});
    file = zip_file(entries);
  }
  const auto path = scratch_file("x.pt", file);
  takes([&] {
    for (const TorchTensor& tensor : read_torch_archive(path)) {
      const std::optional<std::uint64_t> count = count_of(tensor.dimensions);
      hold(count && *count * routing::bytes_of(tensor.type) == tensor.bytes.size(),
           "another number of bytes than numbers");
    }
  });
}

std::string text32(const std::string& text) {
  return std::string("X") + little_endian(text.size(), 4) + text;
}

// A dictionary of one view of a storage, as torch.save() writes it.
std::string state_dict_pickle(const std::string& rest_of_view) {
  const std::string storage =
      "(" + text32("storage") + "ctorch\nFloatStorage\n" + text32("0") + text32("cpu") + "K\4tQ";
  const std::string view = "ctorch._utils\n_rebuild_tensor_v2\n(" + storage + rest_of_view +
                           "\x89"
                           "ccollections\nOrderedDict\n)RtR";
  return "\x80\2ccollections\nOrderedDict\n)R(" + text32("a.weight") + view + "u.";
}

const std::string kWholeView = literal("K\0(K\2K\2t(K\2K\1t");

std::vector<std::string> pickle_seeds() {
  return {state_dict_pickle(kWholeView),
          state_dict_pickle(literal("K\1(K\3t(K\1t")),
          state_dict_pickle(literal("K\0(K\0\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7ft(K\0K\0t")),
          "\x80\2}q\0(X\n\0\0\0state_dictq\1}q\2u.",
          literal("\x80\2}(X\1\0\0\0aK\1X\1\0\0\0b]q\0(K\1K\2eX\1\0\0\0cG?\xf0\0\0\0\0\0\0u."),
          "\x80\2cos\nsystem\n(X\2\0\0\0lstR.",
          "\x80\2}q\1h\1h\1\x86."};
}

std::vector<std::string> archive_seeds() {
  const std::string pickle = state_dict_pickle(kWholeView);
  const std::string numbers(16, '\1');
  std::string framed = pickle + numbers;
  framed += static_cast<char>(16);
  framed += static_cast<char>(pickle.size() >> 8U);
  framed += static_cast<char>(pickle.size() & 0xFFU);
  const std::vector<ZipEntry> whole{{.name = "m/data.pkl", .content = pickle},
                                    {.name = "m/byteorder", .content = "little"},
                                    {.name = "m/data/0", .content = numbers}};
  return {framed + '\1', zip_file(whole) + '\0'};
}

}  // namespace

FuzzTarget pickle_target() {
  return {"pickle", run_pickle, pickle_seeds};
}
FuzzTarget torch_archive_target() {
  return {"torch_archive", run_archive, archive_seeds};
}

}  // namespace routing::fuzz
