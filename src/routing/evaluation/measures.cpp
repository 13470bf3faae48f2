#include "routing/evaluation/measures.h"

#include "routing/core/error.h"
#include "routing/evaluation/likelihood.h"

#include <cmath>
#include <fmt/core.h>

namespace routing {
namespace {

std::string count_of(std::int64_t count, const std::string& what) {
  return std::to_string(count) + " " + what;
}

Measure word_perplexity(const ScoredTokens& scored, double subwords_per_word) {
  const auto tokens = static_cast<double>(scored.tokens);
  if (subwords_per_word > 0.0) {
    return {.key = "word_perplexity",
            .name = "perplexity per word",
            .value = std::exp(subwords_per_word * scored.nats / tokens),
            .note = "the authors' rule, " + fmt::format("{:g}", subwords_per_word) + " subwords per word"};
  }
  return {.key = "word_perplexity",
          .name = "perplexity per word",
          .value = std::exp(scored.nats / static_cast<double>(scored.words)),
          .note = count_of(scored.words, "words")};
}

std::string what_counts(TokenKind kind) {
  switch (kind) {
    case TokenKind::words:
      return "words, one end per line among them";
    case TokenKind::subwords:
      return "subwords, one end per document among them";
    case TokenKind::subpixels:
      return "red, green and blue values";
    case TokenKind::automatic:
    case TokenKind::bytes:
      break;
  }
  return "bytes";
}

}  // namespace

const ScoreUnit& score_unit(TokenKind kind) {
  static const ScoreUnit bytes{"bits_per_byte", "bits/byte", "bpb"};
  static const ScoreUnit values{"bits_per_dim", "bits/dim", "bpd"};
  static const ScoreUnit tokens{"perplexity", "perplexity", "ppl"};
  if (kind == TokenKind::subpixels) return values;
  return kind == TokenKind::words || kind == TokenKind::subwords ? tokens : bytes;
}

double score(TokenKind kind, double nats_per_token) {
  return kind == TokenKind::words || kind == TokenKind::subwords ? std::exp(nats_per_token) : bits(nats_per_token);
}

std::vector<Measure> measures(TokenKind kind, const ScoredTokens& scored, double subwords_per_word) {
  require<InputError>(scored.tokens > 0, "measures of ", scored.tokens, " tokens; at least 1 is needed");
  const ScoreUnit& unit = score_unit(kind);
  std::vector<Measure> all{{.key = unit.key,
                            .name = unit.name,
                            .value = score(kind, scored.nats / static_cast<double>(scored.tokens)),
                            .note = count_of(scored.tokens, what_counts(kind))}};
  if (kind == TokenKind::subwords && (scored.words > 0 || subwords_per_word > 0.0)) {
    all.push_back(word_perplexity(scored, subwords_per_word));
  }
  if ((kind == TokenKind::words || kind == TokenKind::subwords) && scored.bytes > 0) {
    all.push_back({.key = "bits_per_byte",
                   .name = "bits/byte",
                   .value = bits_per_byte(scored.nats, scored.bytes),
                   .note = count_of(scored.bytes, "bytes of text")});
  }
  return all;
}

}  // namespace routing
