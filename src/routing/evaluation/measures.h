// What a likelihood is called: the numbers by which models of bytes, words, subwords and images are compared.
//
//   bits_per_byte     nats / ln 2 / bytes of the text, whatever the tokens
//   bits_per_dim      nats / ln 2 / values of the images
//   perplexity        exp(nats / tokens), with everything that is a token: for words one end per line (as
//                     Transformer-XL counts), for subwords one end per document
//   word_perplexity   exp(nats / words of the text): PG-19's rule, the same for any tokeniser
#pragma once

#include "routing/config/experiment.h"

#include <cstdint>
#include <string>
#include <vector>

namespace routing {

// The one number that stands for a kind of tokens in logs and progress.
struct ScoreUnit {
  std::string key;    // "bits_per_byte": of metrics and JSON
  std::string name;   // "bits/byte": for people
  std::string event;  // "bpb": of TensorBoard
};
const ScoreUnit& score_unit(TokenKind kind);
double score(TokenKind kind, double nats_per_token);

struct ScoredTokens {
  double nats = 0.0;
  std::int64_t tokens = 0;
  std::int64_t words = 0;  // of the text that was scored; 0 if unknown
  std::int64_t bytes = 0;  // of the text that was scored; 0 if unknown
};

struct Measure {
  std::string key;
  std::string name;
  double value = 0.0;
  std::string note;  // what was counted
};

// The score first, then what else is asked for: bits per byte of words and subwords, and perplexity per word of
// subwords. With subwords_per_word > 0 that is the authors' rule, exp(subwords_per_word x nats per subword), and its
// note says so.
std::vector<Measure> measures(TokenKind kind, const ScoredTokens& scored, double subwords_per_word = 0.0);

}  // namespace routing
