#include "routing/interchange/foreign_values.h"

#include "routing/core/error.h"

#include <array>
#include <cstring>
#include <utility>

namespace routing {
namespace {

constexpr std::array<std::pair<NumberType, at::ScalarType>, 10> kTypes{{{NumberType::float16, at::kHalf},
                                                                        {NumberType::bfloat16, at::kBFloat16},
                                                                        {NumberType::float32, at::kFloat},
                                                                        {NumberType::float64, at::kDouble},
                                                                        {NumberType::int8, at::kChar},
                                                                        {NumberType::int16, at::kShort},
                                                                        {NumberType::int32, at::kInt},
                                                                        {NumberType::int64, at::kLong},
                                                                        {NumberType::uint8, at::kByte},
                                                                        {NumberType::boolean, at::kBool}}};

}  // namespace

NumberType number_type(at::ScalarType type) {
  for (const auto& [theirs, ours] : kTypes) {
    if (ours == type) return theirs;
  }
  throw InputError(std::string("numbers of the type ") + at::toString(type) + " have no counterpart in other files");
}

at::ScalarType scalar_type(NumberType type) {
  for (const auto& [theirs, ours] : kTypes) {
    if (theirs == type) return ours;
  }
  throw InputError("a type of numbers is not known");
}

at::Tensor tensor_from(std::span<const std::byte> bytes, NumberType type, const Dimensions& dimensions) {
  const std::optional<std::uint64_t> count = count_of(dimensions);
  require<InputError>(count.has_value() && bytes.size() == *count * bytes_of(type), bytes.size(),
                      " bytes are not those of ", name_of(type), " ", dimensions_text(dimensions));
  at::Tensor tensor = at::empty(dimensions, at::TensorOptions(scalar_type(type)));
  if (!bytes.empty()) std::memcpy(tensor.data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

BundleTensor bundle_tensor(const std::string& name, const at::Tensor& tensor) {
  require<InputError>(tensor.is_contiguous() && tensor.device().is_cpu(), "tensor '", name,
                      "' has gaps or is not on the CPU; hand over a copy of it");
  return {.name = name,
          .type = number_type(tensor.scalar_type()),
          .dimensions = tensor.sizes().vec(),
          .bytes = {static_cast<const std::byte*>(tensor.data_ptr()), tensor.nbytes()}};
}

}  // namespace routing
