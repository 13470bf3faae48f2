// The parts of a tokenizer.json that a SentencePiece model becomes. Inside the room only; use tokenizer_json.h.
#pragma once

#include "routing/data/tokenizers/sentencepiece_model.h"

#include <nlohmann/json.hpp>

namespace routing {

struct SubwordsJson {
  nlohmann::ordered_json normalizer, pre_tokenizer, decoder, model;
};

// Throws an InputError as tokenizer_json() does.
SubwordsJson subwords_json(SentencePieceModel model);

}  // namespace routing
