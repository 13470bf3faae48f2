#include "routing/model/sequence_model.h"

#include "routing/model/encoder_decoder.h"
#include "routing/model/transformer.h"

#include <utility>

namespace routing {

SequenceModel::SequenceModel(ExperimentConfig config) : config_(std::move(config)) {
  validate(config_);
}

void SequenceModel::add_attention(std::int64_t layer, MultiHeadAttention attention) {
  sites_.push_back({layer, std::move(attention)});
}

std::vector<LayerStatistics> SequenceModel::update_centroids() {
  std::vector<LayerStatistics> all;
  for (const RoutedGroup& group : routed_groups()) {
    all.push_back({group.layer, group.centroids->update(), group.attention});
  }
  return all;
}

std::vector<LayerStatistics> SequenceModel::take_evaluation_statistics() {
  std::vector<LayerStatistics> all;
  for (const RoutedGroup& group : routed_groups()) {
    all.push_back({group.layer, group.centroids->take_evaluation_statistics(), group.attention});
  }
  return all;
}

std::string SequenceModel::attention_with_nonfinite_tokens() {
  for (const RoutedGroup& group : routed_groups()) {
    if (!group.centroids->pending_is_finite()) return group.attention;
  }
  return "";
}

std::vector<SequenceModel::RoutedGroup> SequenceModel::routed_groups() {
  std::vector<RoutedGroup> groups;
  for (Site& site : sites_) {
    for (std::size_t index = 0; index < site.attention->config().head_groups.size(); ++index) {
      Centroids* const centroids = site.attention->centroids(index);
      if (centroids != nullptr) groups.push_back({site.layer, site.attention->config().name, centroids});
    }
  }
  return groups;
}

void SequenceModel::forget_collected() {
  for (const RoutedGroup& group : routed_groups()) group.centroids->set_pending({});
}

std::int64_t SequenceModel::num_parameters() const {
  std::int64_t total = 0;
  for (const at::Tensor& parameter : parameters()) total += parameter.numel();
  return total;
}

std::shared_ptr<SequenceModel> make_model(const ExperimentConfig& config, const at::TensorOptions& options) {
  if (config.model.encoder_layers > 0) return std::make_shared<EncoderDecoderImpl>(config, options);
  return std::make_shared<TransformerImpl>(config, options);
}

}  // namespace routing
