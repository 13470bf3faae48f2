#include "lab/tables/row_likelihood.h"

#include "routing/data/dataset.h"
#include "routing/evaluation/measures.h"
#include "routing/evaluation/scored_text.h"
#include "routing/evaluation/token_likelihood.h"
#include "routing/model/weights.h"
#include "routing/training/learner.h"

#include <algorithm>
#include <string>

namespace routing {
namespace {

constexpr const char* kPart = "test";

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
       measures(data.facts().tokens, scored_text(likelihood, data, kPart), row.config.eval.subwords_per_word)) {
    numbers.emplace_back(measure.key, measure.value);
  }
  if (!likelihood.routing.empty()) {
    numbers.emplace_back("occupancy_entropy_min", smallest_occupancy_entropy(likelihood.routing));
  }
  return numbers;
}

}  // namespace routing
