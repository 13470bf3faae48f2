#include "routing/model/image_embedding.h"

#include "routing/core/error.h"
#include "routing/model/token_inputs.h"
#include "routing/ops/embedding.h"
#include "routing/ops/initial_weights.h"

namespace routing {
namespace {

constexpr std::int64_t kChannels = 3;

}  // namespace

std::int64_t image_values(const ModelConfig& model) {
  return kChannels * model.image_height * model.image_width;
}

std::int64_t image_table_rows(const ModelConfig& model) {
  return kChannels * model.vocab_size + 1;
}

at::Tensor initial_image_table(const ModelConfig& model, std::uint64_t key, const at::TensorOptions& options) {
  return initial_weight({.rows = image_table_rows(model),
                         .columns = embedding_width(model),
                         .scale = model.initial_scale,
                         .rows_of_one = model.vocab_size},
                        key, options);
}

std::int64_t image_start_id(const ModelConfig& model) {
  return kChannels * model.vocab_size;
}

std::int64_t image_table_id(const ModelConfig& model, std::int64_t position, std::int64_t before) {
  const std::int64_t longest = image_values(model);
  require<InputError>(position < longest, "a sequence of ", position + 1, " values, but an image of ",
                      model.image_height, " x ", model.image_width, " pixels has ", longest);
  if (position == 0) return image_start_id(model);
  require<InputError>(before >= 0 && before < model.vocab_size, "value ", before, " at position ", position - 1,
                      ", but values are 0 to ", model.vocab_size - 1);
  return position % kChannels * model.vocab_size + before;
}

at::Tensor image_table_ids(const ModelConfig& model, const at::Tensor& values) {
  const std::int64_t n = values.size(1);
  image_table_id(model, n - 1, 0);  // fits?
  at::Tensor ids = at::empty_like(values);
  const at::Tensor from = values.contiguous();
  const auto* const value = from.data_ptr<std::int64_t>();
  auto* const id = ids.data_ptr<std::int64_t>();
  for (std::int64_t row = 0; row < values.size(0); ++row) {
    for (std::int64_t i = 0; i < n; ++i) {
      id[row * n + i] = image_table_id(model, i, i == 0 ? 0 : value[row * n + i - 1]);
    }
  }
  return ids;
}

at::Tensor image_positions(const ModelConfig& model, const ImagePositions& tables,
                           std::span<const std::int64_t> positions) {
  const auto count = static_cast<std::int64_t>(positions.size());
  at::Tensor rows = at::empty({count}, at::kLong);
  at::Tensor columns = at::empty({count}, at::kLong);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t position = positions[static_cast<std::size_t>(i)];
    const std::int64_t pixel = position / kChannels;
    const std::int64_t channel = position % kChannels;
    rows.data_ptr<std::int64_t>()[i] = pixel / model.image_width * kChannels + channel;
    columns.data_ptr<std::int64_t>()[i] = pixel % model.image_width * kChannels + channel;
  }
  return routing::embedding(rows, tables.rows) + routing::embedding(columns, tables.columns);
}

}  // namespace routing
