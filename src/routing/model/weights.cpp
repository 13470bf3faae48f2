#include "routing/model/weights.h"

#include "routing/config/toml.h"
#include "routing/core/error.h"
#include "routing/storage/safetensors.h"
#include "routing/storage/safetensors_metadata.h"

#include <utility>

namespace routing {
namespace {

ExperimentConfig config_in(const std::map<std::string, std::string>& metadata, const std::filesystem::path& path) {
  const auto found = metadata.find("config");
  require<FileError>(found != metadata.end(), path.string(),
                     ": holds no 'config' in its metadata, so the model cannot be built; take a model.safetensors that "
                     "routing train wrote");
  ExperimentConfig config;
  try {
    apply_toml(config, found->second, path.string() + " (metadata 'config')");
    validate(config);
  } catch (const ConfigError& error) {
    throw FileError(error.what());
  }
  return config;
}

// Which tensors of the file the absent ones of a tied output layer are.
std::string tied_tensors(const ModelConfig& model) {
  const std::string owner = model.encoder_layers > 0 ? "target." : "";
  const std::size_t bands = predicts_bands(model) ? bands_of(model).size() : 1;
  const std::int64_t words = bands > 1 ? bands_of(model).front().words : model.vocab_size;
  const bool last_row_is_no_output = model.start_symbol == StartSymbol::own;
  std::string text = "output_weight=" + owner + "embedding";
  if (last_row_is_no_output) text += "[0:" + std::to_string(words + static_cast<std::int64_t>(bands) - 1) + "]";
  for (std::size_t band = 1; band < bands; ++band) {
    const std::string number = std::to_string(band);
    text += " output_band" + number + "=" + owner + "embedding_band" + number;
    text += " output_projection" + number + "=" + owner + "embedding_projection" + number + ".t";
  }
  return text;
}

// A new model of the file's configuration becomes the model of the file.
template <class Model>
Model filled(Model model, const TensorFile& file, const std::filesystem::path& path) {
  load_tensors(*model, file.tensors, path.string());
  model->eval();
  return model;
}

const at::TensorOptions kFloats = at::TensorOptions().dtype(at::kFloat);

}  // namespace

std::map<std::string, at::Tensor> named_tensors(const torch::nn::Module& module) {
  std::map<std::string, at::Tensor> tensors;
  for (const auto& item : module.named_parameters()) tensors.emplace(item.key(), item.value().detach());
  for (const auto& item : module.named_buffers()) tensors.emplace(item.key(), item.value().detach());
  return tensors;
}

void load_tensors(torch::nn::Module& module, const std::map<std::string, at::Tensor>& tensors,
                  const std::string& origin) {
  const auto own = named_tensors(module);
  for (const auto& [name, value] : own) {
    const auto found = tensors.find(name);
    require<FileError>(found != tensors.end(), origin, ": tensor '", name, "' ", value.sizes(),
                       " is missing; the file belongs to another configuration");
    require<FileError>(found->second.sizes() == value.sizes() && found->second.scalar_type() == value.scalar_type(),
                       origin, ": tensor '", name, "' is ", found->second.scalar_type(), " ", found->second.sizes(),
                       ", but the model has ", value.scalar_type(), " ", value.sizes(),
                       "; the file belongs to another configuration");
  }
  for (const auto& [name, value] : tensors) {
    require<FileError>(own.count(name) == 1, origin, ": tensor '", name, "' ", value.sizes(),
                       " is not part of the model; the file belongs to another configuration");
  }
  const at::NoGradGuard no_gradient;
  for (const auto& [name, value] : own) at::Tensor(value).copy_(tensors.at(name));
}

void save_model(const std::filesystem::path& path, SequenceModel& model, const ModelNotes& notes) {
  TensorFile file{.tensors = named_tensors(model),
                  .metadata = {{"format", "pt"},
                               {"config", to_toml(model.config())},
                               {"version", notes.version},
                               {"validity", validity_label(model.config())}}};
  if (!notes.tokenizer_hash.empty()) file.metadata["tokenizer"] = notes.tokenizer_hash;
  if (!notes.data_label.empty()) file.metadata["data_label"] = notes.data_label;
  if (!notes.audit.empty()) file.metadata["audit"] = notes.audit;
  if (model.config().model.tied_output) file.metadata["tied"] = tied_tensors(model.config().model);
  write_safetensors(path, file);
}

ExperimentConfig load_model_config(const std::filesystem::path& path) {
  return config_in(read_safetensors_metadata(path), path);
}

ModelNotes load_model_notes(const std::filesystem::path& path) {
  const std::map<std::string, std::string> metadata = read_safetensors_metadata(path);
  const auto value = [&](const char* key) {
    const auto found = metadata.find(key);
    return found == metadata.end() ? std::string() : found->second;
  };
  return {.version = value("version"),
          .tokenizer_hash = value("tokenizer"),
          .data_label = value("data_label"),
          .audit = value("audit")};
}

void set_model_audit(const std::filesystem::path& path, const std::string& text) {
  set_safetensors_metadata(path, "audit", text);
}

std::shared_ptr<SequenceModel> load_sequence_model(const std::filesystem::path& path) {
  const TensorFile file = read_safetensors(path);
  return filled(make_model(config_in(file.metadata, path), kFloats), file, path);
}

Transformer load_model(const std::filesystem::path& path) {
  const TensorFile file = read_safetensors(path);
  const ExperimentConfig config = config_in(file.metadata, path);
  require<FileError>(config.model.encoder_layers == 0, path.string(),
                     ": holds an encoder-decoder, but a decoder-only model is needed; take a model whose "
                     "model.encoder_layers is 0");
  return filled(Transformer(config, kFloats), file, path);
}

EncoderDecoder load_encoder_decoder(const std::filesystem::path& path) {
  const TensorFile file = read_safetensors(path);
  const ExperimentConfig config = config_in(file.metadata, path);
  require<FileError>(config.model.encoder_layers > 0, path.string(),
                     ": holds a decoder-only model, but an encoder-decoder is needed; take a model whose "
                     "model.encoder_layers is above 0");
  return filled(EncoderDecoder(config, kFloats), file, path);
}

}  // namespace routing
