// A trained model as Python holds it: the model, its tokens and what its file says.
#pragma once

#include "routing/data/tokenizers/tokenizer.h"
#include "routing/generation/decoder.h"
#include "routing/model/sequence_model.h"
#include "routing/model/weights.h"
#include "routing/ops/precision.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace routing::python {

struct LoadedModel {
  std::filesystem::path path = {};
  std::shared_ptr<SequenceModel> model = {};
  ModelNotes notes = {};
  std::shared_ptr<const Tokenizer> tokenizer = {};  // of text; null for images and encoder-decoders
  MatmulPrecision precision = MatmulPrecision::fp32;

  const ExperimentConfig& config() const { return model->config(); }
  bool is_image() const { return config().model.image_height > 0; }
  // What ends a sample, as in `routing generate`: -1 for nothing. <eos> of words ends a line, not the text.
  std::int64_t end_token() const;
  // An InputError for models without a text: `what` says what was asked for.
  const Tokenizer& text_of(const char* what) const;
};

// int64 [sequences, tokens] or [tokens] as a batch; an InputError for anything else, and for ids that the model has
// not.
at::Tensor batch_of(const LoadedModel& model, const at::Tensor& tokens, const char* name);

// Plain ids, for prompts.
std::vector<std::int32_t> ids_of(const LoadedModel& model, const at::Tensor& tokens, const char* name);

}  // namespace routing::python
