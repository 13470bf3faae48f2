#include "routing/model/vocabulary_layers.h"

#include "routing/ops/embedding.h"
#include "routing/ops/initial_weights.h"

#include <string>

namespace routing {
namespace {

std::int64_t further_bands(const ModelConfig& config) {
  return static_cast<std::int64_t>(parse_bands(config.bands).size());
}

// A view that is kept as long as its tensor is. A model that is made without gradients may be trained all the same.
template <class View>
at::Tensor lasting_view(const View& view) {
  const at::AutoGradMode gradients(true);
  return view();
}

// Registers weights that are drawn from the stream of their place and name.
class NewWeights {
 public:
  NewWeights(const ModelConfig& config, const LayerPlace& place, torch::nn::Module& owner,
             const at::TensorOptions& options)
      : config_(config), place_(place), owner_(owner), options_(options) {}

  at::Tensor matrix(const std::string& name, std::int64_t rows, std::int64_t columns) const {
    return add(name, {rows, columns, config_.initial_scale});
  }
  // Rows of all bands start as those of one table, whatever bands there are and whatever is stored with them.
  at::Tensor words(const std::string& name, std::int64_t rows, std::int64_t columns) const {
    return add(name, {rows, columns, config_.initial_scale, config_.vocab_size});
  }
  at::Tensor zeros(const std::string& name, std::int64_t size) const {
    return owner_.register_parameter(name, at::zeros({size}, options_));
  }

 private:
  at::Tensor add(const std::string& name, const InitialWeight& weight) const {
    return owner_.register_parameter(name, initial_weight(weight, place_.key(name), options_));
  }

  const ModelConfig& config_;
  const LayerPlace& place_;
  torch::nn::Module& owner_;
  const at::TensorOptions& options_;
};

}  // namespace

std::int64_t embedding_width(const ModelConfig& config) {
  return config.embedding_width > 0 ? config.embedding_width : config.width;
}

std::vector<VocabularyBand> bands_of(const ModelConfig& config) {
  return vocabulary_bands({.ends = config.bands,
                           .vocab_size = config.vocab_size,
                           .width = embedding_width(config),
                           .factor = config.band_factor});
}

bool reads_bands(const ModelConfig& config) {
  return config.adaptive_input && further_bands(config) > 0;
}

bool predicts_bands(const ModelConfig& config) {
  return config.adaptive_output && further_bands(config) > 0;
}

bool projects_embeddings(const ModelConfig& config) {
  return embedding_width(config) != config.width || (config.embedding_projection && !reads_bands(config));
}

TokenTable::TokenTable(const at::Tensor& table) : table_{.bands = {{.words = table.size(0), .table = table}}} {}

TokenTable::TokenTable(const ModelConfig& config, TableUse use, const LayerPlace& place, torch::nn::Module& owner,
                       const at::TensorOptions& options) {
  const NewWeights weights(config, place, owner, options);
  const std::int64_t width = embedding_width(config);
  const std::int64_t start_rows = config.start_symbol == StartSymbol::own ? 1 : 0;
  if (!reads_bands(config)) {
    const std::int64_t rows = config.vocab_size + start_rows;
    table_.bands = {{.words = rows, .table = weights.words("embedding", rows, width)}};
    return;
  }
  const std::vector<VocabularyBand> bands = bands_of(config);
  const bool shared = use == TableUse::input_and_output && config.tied_output;
  const std::int64_t symbols = shared ? static_cast<std::int64_t>(bands.size()) - 1 : 0;
  if (start_rows > 0) table_.extra_row = bands.front().words + symbols;
  for (const VocabularyBand& band : bands) {
    const std::string number = std::to_string(table_.bands.size());
    const bool first = table_.bands.empty();
    EmbeddingBand made{.words = band.words};
    made.table = first ? weights.words("embedding", band.words + symbols + start_rows, width)
                       : weights.words("embedding_band" + number, band.words, band.width);
    if (!first || (config.embedding_projection && width == config.width)) {
      made.projection = weights.matrix("embedding_projection" + number, width, band.width);
    }
    table_.bands.push_back(made);
  }
}

at::Tensor TokenTable::vectors(const at::Tensor& ids, MatmulPrecision precision) const {
  if (table_.bands.size() == 1) return routing::embedding(ids, table_.bands.front().table);
  return adaptive_embedding(ids, table_, precision);
}

OutputLayer::OutputLayer(const ModelConfig& config, const LayerPlace& place, const TokenTable& table,
                         torch::nn::Module& owner, const at::TensorOptions& options) {
  const NewWeights weights(config, place, owner, options);
  const std::int64_t width = embedding_width(config);
  std::vector<VocabularyBand> bands{{.words = config.vocab_size, .width = width}};
  if (predicts_bands(config)) bands = bands_of(config);
  const auto symbols = static_cast<std::int64_t>(bands.size()) - 1;
  for (const VocabularyBand& band : bands) {
    const std::size_t index = bands_.size();
    const std::string number = std::to_string(index);
    SoftmaxBand made;
    if (index == 0) {
      const std::int64_t rows = band.words + symbols;
      if (!config.tied_output) {
        made.table = weights.words("output_weight", rows, width);
      } else {
        made.table = table.bands().front().table;
        if (made.table.size(0) != rows) made.table = lasting_view([&] { return made.table.narrow(0, 0, rows); });
      }
    } else if (config.tied_output) {
      made.table = table.bands().at(index).table;
      made.projection = lasting_view([&] { return table.bands().at(index).projection.t(); });
    } else {
      made.table = weights.words("output_band" + number, band.words, band.width);
      made.projection = weights.matrix("output_projection" + number, band.width, width);
    }
    bands_.push_back(made);
  }
  const at::Tensor bias = weights.zeros("output_bias", config.vocab_size + symbols);
  std::int64_t first = 0;
  for (SoftmaxBand& band : bands_) {
    const std::int64_t rows = band.table.size(0);
    band.bias = bands_.size() == 1 ? bias : lasting_view([&] { return bias.narrow(0, first, rows); });
    first += rows;
  }
}

at::Tensor OutputLayer::logits(const at::Tensor& values, MatmulPrecision precision) const {
  if (bands_.size() > 1) return adaptive_log_probabilities(values, bands_, precision);
  return routing::linear(values, bands_.front().table, bands_.front().bias, {.precision = precision});
}

at::Tensor OutputLayer::nats(const at::Tensor& values, const at::Tensor& targets, MatmulPrecision precision) const {
  return adaptive_softmax_loss(values.flatten(0, 1), bands_, targets.flatten(), {.precision = precision})
      .view(targets.sizes());
}

}  // namespace routing
