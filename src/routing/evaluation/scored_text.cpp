#include "routing/evaluation/scored_text.h"

#include "routing/data/prepared.h"
#include "routing/data/sources/pg19.h"

#include <cstdint>
#include <span>
#include <vector>

namespace routing {

ScoredTokens scored_text(const Likelihood& likelihood, const Dataset& data, const std::string& part) {
  ScoredTokens result{.nats = likelihood.nats, .tokens = likelihood.tokens};
  const TokenKind kind = data.facts().tokens;
  if (kind != TokenKind::words && kind != TokenKind::subwords) return result;
  const DatasetPart& scored = data.part(part);
  if (likelihood.tokens == scored.tokens.size()) {
    const bool whole_pg19 = data.facts().format == "pg19" && data.facts().missing.empty();
    result.words = whole_pg19 ? official_pg19_words(part).value_or(scored.words) : scored.words;
    result.bytes = scored.bytes;
    return result;
  }
  std::vector<std::int32_t> ids(static_cast<std::size_t>(likelihood.tokens));
  scored.tokens.copy(0, std::span(ids));
  const std::string text = data.tokenizer()->decode(ids);
  result.words = count_words(text);
  result.bytes = static_cast<std::int64_t>(text.size());
  return result;
}

}  // namespace routing
