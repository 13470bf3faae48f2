#include "routing/analysis/row_likelihood.h"

#include "routing/data/dataset.h"
#include "routing/data/pg19.h"
#include "routing/evaluation/measures.h"
#include "routing/evaluation/token_likelihood.h"
#include "routing/model/weights.h"
#include "routing/training/learner.h"

#include <algorithm>
#include <string>

namespace routing {
namespace {

constexpr const char* kPart = "test";

// Words and bytes behind the tokens: known of a whole part, of its beginning the tokens tell.
ScoredTokens scored_text(const Likelihood& likelihood, const Dataset& data) {
  ScoredTokens result{.nats = likelihood.nats, .tokens = likelihood.tokens};
  const TokenKind kind = data.facts().tokens;
  if (kind != TokenKind::words && kind != TokenKind::subwords) return result;
  const DatasetPart& part = data.part(kPart);
  if (likelihood.tokens == part.tokens.size()) {
    const bool whole_pg19 = data.facts().format == "pg19" && data.facts().missing.empty();
    result.words = whole_pg19 ? official_pg19_words(kPart).value_or(part.words) : part.words;
    result.bytes = part.bytes;
    return result;
  }
  std::vector<std::int32_t> ids(static_cast<std::size_t>(likelihood.tokens));
  part.tokens.copy(0, std::span(ids));
  const std::string text = data.tokenizer()->decode(ids);
  result.words = count_words(text);
  result.bytes = static_cast<std::int64_t>(text.size());
  return result;
}

}  // namespace

RowNumbers row_likelihood(const RowToEvaluate& row) {
  const Dataset data(row.config.data);
  const TokenView tokens = data.part(kPart).tokens;
  Transformer model = load_model(row.model);
  const Likelihood likelihood = token_likelihood(*model, tokens,
                                                 {.sequence_length = row.config.train.sequence_length,
                                                  .stride = row.config.eval.stride,
                                                  .batch_size = row.config.eval.batch_size,
                                                  .limit_tokens = std::min(row.test_tokens, tokens.size()),
                                                  .record_length = data.facts().record_length(),
                                                  .precision = matmul_precision(row.config.train.precision),
                                                  .progress = row.progress});
  RowNumbers numbers{{"nats", likelihood.nats}, {"tokens", static_cast<double>(likelihood.tokens)}};
  for (const Measure& measure :
       measures(data.facts().tokens, scored_text(likelihood, data), row.config.eval.subwords_per_word)) {
    numbers.emplace_back(measure.key, measure.value);
  }
  if (!likelihood.routing.empty()) {
    numbers.emplace_back("occupancy_entropy_min", smallest_occupancy_entropy(likelihood.routing));
  }
  return numbers;
}

}  // namespace routing
