// What training and files need of a model, whether it reads a source or not.
#pragma once

#include "routing/attention/multi_head.h"
#include "routing/config/experiment.h"
#include "routing/model/layers.h"

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace routing {

// Statistics of one group of routed heads and where it stands.
struct LayerStatistics {
  std::int64_t layer = 0;
  RoutingStatistics statistics = {};
  std::string attention = {};  // by name: "layer 0", "encoder layer 0", "cross-attention of layer 0"
};

// Sequences to learn from. Padding may be anywhere in a source and stands after the end of a target.
struct TokenBatch {
  at::Tensor tokens = {};        // int64 [batch, m]: the targets
  at::Tensor valid = {};         // bool [batch, m], false for padding; undefined means that there is none
  at::Tensor source = {};        // int64 [batch, n]; undefined for a decoder-only model
  at::Tensor source_valid = {};  // bool [batch, n]
};

class SequenceModel : public torch::nn::Module {
 public:
  struct Loss {
    at::Tensor nats;       // [batch, m]: of every target; 0 at padding, which does not count
    at::Tensor auxiliary;  // what the patterns add to the training loss; undefined in evaluation or if nothing
  };
  virtual Loss loss(const TokenBatch& batch, const ForwardContext& context) = 0;

  // Moves the centroids of all routed groups by what the training forwards since the last call saw. To be called once
  // after each optimiser step.
  std::vector<LayerStatistics> update_centroids();
  // The same statistics of forwards in evaluation since the last call; changes nothing else.
  std::vector<LayerStatistics> take_evaluation_statistics();
  // The name of the first attention whose routed heads saw tokens that are not finite since the last update; empty if
  // none did.
  std::string attention_with_nonfinite_tokens();
  // All groups of routed heads, in the order of statistics.
  struct RoutedGroup {
    std::int64_t layer = 0;
    std::string attention = {};  // by name, as in LayerStatistics
    Centroids* centroids = nullptr;
  };
  std::vector<RoutedGroup> routed_groups();
  // Forgets what training forwards collected for the centroids, for a step that is given up.
  void forget_collected();

  const ExperimentConfig& config() const { return config_; }
  std::int64_t num_parameters() const;

 protected:
  // Refuses a configuration that is not valid.
  explicit SequenceModel(ExperimentConfig config);
  // Every attention of the model, named once, in the order of statistics.
  void add_attention(std::int64_t layer, MultiHeadAttention attention);

 private:
  struct Site {
    std::int64_t layer = 0;
    MultiHeadAttention attention = nullptr;
  };
  ExperimentConfig config_;
  std::vector<Site> sites_;
};

// The model that the configuration describes: an EncoderDecoder where there are encoder layers, or else a Transformer.
std::shared_ptr<SequenceModel> make_model(const ExperimentConfig& config, const at::TensorOptions& options);

}  // namespace routing
