// What scored tokens were as text, so that likelihoods of different tokenisers can be compared.
#pragma once

#include "routing/data/dataset.h"
#include "routing/evaluation/measures.h"
#include "routing/evaluation/token_likelihood.h"

#include <string>

namespace routing {

// The first likelihood.tokens tokens of a part. Words and bytes of a whole part are known; of its beginning the decoded
// tokens tell. The words of a whole PG-19 are those its authors count. Bytes and images have neither.
ScoredTokens scored_text(const Likelihood& likelihood, const Dataset& data, const std::string& part);

}  // namespace routing
