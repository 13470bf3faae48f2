#include "routing/model/image_embedding.h"

#include "routing/core/error.h"
#include "routing/ops/embedding.h"

namespace routing {
namespace {

constexpr std::int64_t kChannels = 3;

}  // namespace

std::int64_t image_table_rows(const ModelConfig& model) {
  return kChannels * model.vocab_size + 1;
}

std::int64_t image_start_id(const ModelConfig& model) {
  return kChannels * model.vocab_size;
}

at::Tensor image_table_ids(const ModelConfig& model, const at::Tensor& values) {
  const std::int64_t n = values.size(1);
  const std::int64_t longest = kChannels * model.image_height * model.image_width;
  require<InputError>(n <= longest, "a sequence of ", n, " values, but an image of ", model.image_height, " x ",
                      model.image_width, " pixels has ", longest);
  at::Tensor ids = at::empty_like(values);
  const at::Tensor from = values.contiguous();
  const auto* const value = from.data_ptr<std::int64_t>();
  auto* const id = ids.data_ptr<std::int64_t>();
  for (std::int64_t row = 0; row < values.size(0); ++row) {
    id[row * n] = image_start_id(model);
    for (std::int64_t i = 1; i < n; ++i) {
      const std::int64_t before = value[row * n + i - 1];
      require<InputError>(before >= 0 && before < model.vocab_size, "value ", before, " at position ", i - 1,
                          ", but values are 0 to ", model.vocab_size - 1);
      id[row * n + i] = i % kChannels * model.vocab_size + before;
    }
  }
  return ids;
}

at::Tensor image_positions(const ModelConfig& model, const ImagePositions& tables, std::int64_t n) {
  at::Tensor rows = at::empty({n}, at::kLong);
  at::Tensor columns = at::empty({n}, at::kLong);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t pixel = i / kChannels;
    const std::int64_t channel = i % kChannels;
    rows.data_ptr<std::int64_t>()[i] = pixel / model.image_width * kChannels + channel;
    columns.data_ptr<std::int64_t>()[i] = pixel % model.image_width * kChannels + channel;
  }
  return routing::embedding(rows, tables.rows) + routing::embedding(columns, tables.columns);
}

}  // namespace routing
