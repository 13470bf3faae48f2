// How a trained row is judged: the likelihood of the test part, in every unit that its tokens allow.
#pragma once

#include "lab/tables/table_spec.h"

namespace routing {

// "nats" (summed), "tokens", then the measures of evaluation/measures.h by their keys: "bits_per_dim", "perplexity",
// "word_perplexity" and so on. Windows, stride and precision are those of the run. A ConfigError if the data have no
// part test.
RowNumbers row_likelihood(const RowToEvaluate& row);

}  // namespace routing
