// What a file of torch.save() says about its tensors, read without running any of it. Knows no torch.
//
// A pickle is a program: it may name any function of any Python module and call it. This reader knows the part of
// protocol 2 that torch.save() needs for tensors by name (dictionaries, tuples, lists, texts, numbers, references to
// storages) and calls nothing: of all functions of the world it understands three, that make an OrderedDict, a tensor
// and a parameter. Everything else is refused by its name.
#pragma once

#include "routing/interchange/values/foreign_tensor.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace routing {

// A tensor as a view of a storage, which is a file of its own in the archive.
struct PickledTensor {
  std::string name = {};
  std::string storage = {};  // its number, as a text
  NumberType type = NumberType::float32;
  std::uint64_t storage_count = 0;  // numbers of the storage
  std::uint64_t offset = 0;         // in numbers
  Dimensions dimensions = {};
  Dimensions strides = {};  // in numbers
};

// The tensors of a state_dict: of the whole pickle, or of the entry of this name in it. Every tensor lies inside of its
// storage, and no tensor has more numbers than its storage. Throws a FileError that begins with `where` and names what
// is not understood.
std::vector<PickledTensor> read_pickled_tensors(std::span<const std::byte> pickle, const std::string& where,
                                                const std::string& entry = {});

}  // namespace routing
