// A model on disk: one safetensors file with its weights and buffers (centroids and their thresholds among them), and
// in the metadata the configuration, the version and what its likelihoods are worth.
//
//   config     the resolved configuration as TOML
//   version    of this program
//   validity   "causal" or "selection reads the future"
//   tokenizer  hash of the tokeniser whose ids it reads
//   data_label "partial data" if it was not trained on a whole set; absent otherwise
//   audit      what `routing audit` found of this file: verdict, positions, date, version; absent if it was not audited
//   tied       which tensor an absent one is ("output_weight=embedding"), where the output layer is tied; in bands
//              all of them, with blanks between ("output_projection1=embedding_projection1.t": transposed)
#pragma once

#include "routing/model/encoder_decoder.h"
#include "routing/model/sequence_model.h"
#include "routing/model/transformer.h"

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>

namespace routing {

// Parameters and buffers by name.
std::map<std::string, at::Tensor> named_tensors(const torch::nn::Module& module);
// Copies values into the module in place. Throws a FileError that begins with `origin` and names the first tensor that
// is missing, too many, or of another shape or type; the module is then as it was.
void load_tensors(torch::nn::Module& module, const std::map<std::string, at::Tensor>& tensors,
                  const std::string& origin);

// What a file says about its model beside the configuration.
struct ModelNotes {
  std::string version = {};
  std::string tokenizer_hash = {};  // of the tokens it was trained on
  std::string data_label = {};      // "partial data" if those were not a whole set
  std::string audit = {};           // of set_model_audit(); empty if the file was not audited
};
void save_model(const std::filesystem::path& path, SequenceModel& model, const ModelNotes& notes);
ModelNotes load_model_notes(const std::filesystem::path& path);
// Writes what an audit found into the file; its tensors stay as they are (safetensors_metadata.h).
void set_model_audit(const std::filesystem::path& path, const std::string& text);
// Builds the model that the file describes, in evaluation mode.
std::shared_ptr<SequenceModel> load_sequence_model(const std::filesystem::path& path);
// The same where only one of the two will do; a FileError says which one the file holds.
Transformer load_model(const std::filesystem::path& path);
EncoderDecoder load_encoder_decoder(const std::filesystem::path& path);
// The configuration alone.
ExperimentConfig load_model_config(const std::filesystem::path& path);

}  // namespace routing
