#include "routing/interchange/pickle/restricted_pickle.h"

#include "routing/core/error.h"
#include "routing/interchange/pickle/pickle_machine.h"

#include <array>
#include <set>
#include <utility>

namespace routing {
namespace {

struct StorageClass {
  const char* name;
  NumberType type;
};
constexpr std::array kClasses{StorageClass{"torch.FloatStorage", NumberType::float32},
                              StorageClass{"torch.DoubleStorage", NumberType::float64},
                              StorageClass{"torch.HalfStorage", NumberType::float16},
                              StorageClass{"torch.BFloat16Storage", NumberType::bfloat16},
                              StorageClass{"torch.LongStorage", NumberType::int64},
                              StorageClass{"torch.IntStorage", NumberType::int32},
                              StorageClass{"torch.ShortStorage", NumberType::int16},
                              StorageClass{"torch.CharStorage", NumberType::int8},
                              StorageClass{"torch.ByteStorage", NumberType::uint8},
                              StorageClass{"torch.BoolStorage", NumberType::boolean}};

// Entries of a pickle are short, and may all name the same tensor: these bound what we keep of each, and of how many.
constexpr std::size_t kMostDimensions = 64;
constexpr std::size_t kLongestStorageName = 64;
constexpr std::size_t kMostTensors = 100'000;

class TensorReader {
 public:
  TensorReader(const PickleMachine& machine, std::string where) : machine_(machine), where_(std::move(where)) {}

  PickledTensor read(const std::string& name, const PickleValue& made_of) const {
    const std::string where = where_ + ": tensor '" + name + "'";
    const std::vector<PickleId>& items = made_of.items;
    // storage, offset, size, stride, requires_grad, hooks and, since torch 2, metadata
    require<FileError>(items.size() == 6 || items.size() == 7, where, ": is made of ", items.size(),
                       " values, but 6 or 7 were expected; only plain tensors are read");
    PickledTensor tensor{.name = name};
    read_storage(where, item(items[0]), tensor);
    tensor.offset = whole_number(where + ": its offset", item(items[1]));
    tensor.dimensions = numbers(where + ": its size", item(items[2]));
    tensor.strides = numbers(where + ": its stride", item(items[3]));
    const PickleValue& hooks = item(items[5]);
    require<FileError>(hooks.kind == PickleKind::dictionary && hooks.items.empty(), where, ": has hooks, ",
                       described(hooks), ", but none were expected");
    require_inside(where, tensor);
    return tensor;
  }

 private:
  const PickleValue& item(PickleId id) const { return machine_.value(id); }

  void read_storage(const std::string& where, const PickleValue& storage, PickledTensor& tensor) const {
    require<FileError>(storage.kind == PickleKind::storage, where, ": is a view of ", described(storage),
                       ", but a storage was expected");
    const std::string& wanted = item(storage.items[1]).text;
    const StorageClass* found = nullptr;
    for (const StorageClass& each : kClasses) {
      if (wanted == each.name) found = &each;
    }
    require<FileError>(found != nullptr, where, ": its storage is of the class ", wanted, ", which is none");
    tensor.type = found->type;
    tensor.storage = item(storage.items[2]).text;
    require<FileError>(tensor.storage.size() <= kLongestStorageName, where, ": the name of its storage has ",
                       tensor.storage.size(), " bytes, but at most ", kLongestStorageName,
                       " were expected; the file is a trap");
    tensor.storage_count = whole_number(where + ": the count of its storage", item(storage.items[4]));
  }

  static std::uint64_t whole_number(const std::string& where, const PickleValue& value) {
    require<FileError>(value.kind == PickleKind::integer && value.number >= 0, where, " is ", described(value),
                       ", but a number from 0 up was expected");
    return static_cast<std::uint64_t>(value.number);
  }

  Dimensions numbers(const std::string& where, const PickleValue& value) const {
    require<FileError>(value.kind == PickleKind::tuple && value.items.size() <= kMostDimensions, where, " is ",
                       described(value), ", but a tuple of up to ", kMostDimensions, " numbers was expected");
    Dimensions found;
    for (const PickleId id : value.items) found.push_back(static_cast<std::int64_t>(whole_number(where, item(id))));
    return found;
  }

  // The last number of the view must be one of the storage. Divides, so that no product overflows.
  static void require_inside(const std::string& where, const PickledTensor& tensor) {
    require<FileError>(tensor.dimensions.size() == tensor.strides.size(), where, ": has ", tensor.dimensions.size(),
                       " sizes and ", tensor.strides.size(), " strides; the file is damaged");
    const std::optional<std::uint64_t> count = count_of(tensor.dimensions);
    require<FileError>(count.has_value() && *count <= tensor.storage_count, where, ": is ",
                       dimensions_text(tensor.dimensions), ", more numbers than the ", tensor.storage_count,
                       " of its storage; the file is damaged, or save a copy of it (clone())");
    if (*count == 0) return;
    std::uint64_t last = tensor.offset;
    bool inside = last < tensor.storage_count;
    for (std::size_t axis = 0; inside && axis < tensor.dimensions.size(); ++axis) {
      const auto steps = static_cast<std::uint64_t>(tensor.dimensions[axis] - 1);
      const auto stride = static_cast<std::uint64_t>(tensor.strides[axis]);
      const std::uint64_t room = tensor.storage_count - 1 - last;
      inside = steps == 0 || stride <= room / steps;
      if (inside) last += steps * stride;
    }
    require<FileError>(inside, where, ": size ", dimensions_text(tensor.dimensions), ", stride ",
                       dimensions_text(tensor.strides), " and offset ", tensor.offset, " reach beyond the ",
                       tensor.storage_count, " numbers of its storage; the file is damaged");
  }

  const PickleMachine& machine_;
  std::string where_;
};

std::string keys_text(const PickleMachine& machine, const PickleValue& dictionary) {
  std::string text;
  for (std::size_t index = 0; index < dictionary.items.size() && index < 40; index += 2) {
    const PickleValue& key = machine.value(dictionary.items[index]);
    text += (text.empty() ? "" : ", ") + (key.kind == PickleKind::text ? key.text.substr(0, 60) : described(key));
  }
  return text;
}

const PickleValue& entry_of(const PickleMachine& machine, const PickleValue& whole, const std::string& where,
                            const std::string& entry) {
  require<FileError>(whole.kind == PickleKind::dictionary, where, ": holds ", described(whole),
                     ", but a dictionary of tensors was expected: torch.save(model.state_dict(), path)");
  if (entry.empty()) return whole;
  for (std::size_t index = 0; index < whole.items.size(); index += 2) {
    const PickleValue& key = machine.value(whole.items[index]);
    const PickleValue& value = machine.value(whole.items[index + 1]);
    if (key.kind != PickleKind::text || key.text != entry) continue;
    require<FileError>(value.kind == PickleKind::dictionary, where, ": entry '", entry, "' is ", described(value),
                       ", but a dictionary of tensors was expected");
    return value;
  }
  throw FileError(where + ": has no entry '" + entry + "'; it has " + keys_text(machine, whole));
}

}  // namespace

std::vector<PickledTensor> read_pickled_tensors(std::span<const std::byte> pickle, const std::string& where,
                                                const std::string& entry) {
  PickleMachine machine(pickle, where);
  const PickleId whole = machine.run();
  const PickleValue& dictionary = entry_of(machine, machine.value(whole), where, entry);
  const TensorReader reader(machine, where);
  std::vector<PickledTensor> tensors;
  std::set<std::string> names;
  for (std::size_t index = 0; index < dictionary.items.size(); index += 2) {
    const PickleValue& key = machine.value(dictionary.items[index]);
    const PickleValue& value = machine.value(dictionary.items[index + 1]);
    require<FileError>(key.kind == PickleKind::text, where, ": has ", described(key),
                       " as a key, but names of tensors were expected");
    require<FileError>(value.kind == PickleKind::tensor, where, ": entry '", key.text, "' is ", described(value),
                       ", but a tensor was expected; the entries are ", keys_text(machine, dictionary),
                       "; name the one with the model's state_dict as `entry`");
    require<FileError>(tensors.size() < kMostTensors, where, ": has more than ", kMostTensors,
                       " tensors; the file is a trap");
    require<FileError>(names.insert(key.text).second, where, ": has two tensors named '", key.text, "'");
    tensors.push_back(reader.read(key.text, value));
  }
  return tensors;
}

}  // namespace routing
