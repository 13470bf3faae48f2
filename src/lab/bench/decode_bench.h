// `bench decode`: what one more token costs, early and late in a sequence.
//
// Models are not trained, but their routed heads are made to choose as trained ones do: kSetupPasses forward passes in
// training mode over random bytes, each followed by update_centroids(), so that centroids stand among the tokens and
// thresholds let about as many tokens into a cluster as their target says. `memberships` is what a pass in evaluation
// mode over other random bytes then shows. Prompts and new tokens are random bytes too.
#pragma once

#include "lab/bench/row.h"
#include "routing/config/experiment.h"
#include "routing/ops/precision.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace routing {
class SequenceModel;
}

namespace routing::bench {

struct DecodeBench {
  // Sizes and everything else; attention.content is set for each case. train.sequence_length is that of the passes that
  // set centroids up.
  ExperimentConfig config = {};
  std::vector<std::string> contents = {"routing"};         // of attention.content
  std::vector<std::string> precisions = {"fp32", "bf16"};  // of products
  std::vector<std::int64_t> positions = {500, 8000};
  std::vector<std::int64_t> batches = {1};  // sequences that are decoded together
  std::int64_t prefix = 8192;               // tokens of "prefill" and "re-run prefix"; 0 leaves both out
  std::int64_t prefill_block = 512;
  RunnerOptions runner = {};
};

// Bytes of parameters that a step reads: every matrix in the type of the precision (4 or 2 bytes per number), relative
// tables among them, biases and norms in 4 bytes, and of the embedding one row, unless it is the output matrix too.
// Centroids are not parameters.
std::int64_t weight_bytes(const SequenceModel& model, MatmulPrecision precision);

// For each content and precision, in one set of rounds:
//
//   read weights    reads weight_bytes() of other memory once (read_rate.h), in runs of eight: the least a step can
//                   take where the weights do not fit into the caches
//   step            a row for each number of sequences and each position, which is `n`: one token of every sequence.
//                   A fork of a sequence that has read `position` tokens reads one more untimed and then eight, and is
//                   dropped; `seconds` are those of one of the eight. ratio = seconds / those of "read weights"
//   prefill         a prompt of `prefix` tokens in blocks; peak_bytes beside the weights, at most 3 rounds.
//                   ratio = seconds / those of "re-run prefix"
//   re-run prefix   the logits after the same prompt without a cache, at most 3 rounds. ratio = seconds / those of a
//                   step of the first number of sequences at the last position
//
// `bytes` are weight_bytes() in the first two; flops are not counted.
//
// Throws  ConfigError  a configuration that cannot be, or cannot be decoded with a cache
std::vector<Row> bench_decode(const DecodeBench& bench);

// What the rows of one content, precision and number of sequences say together. Empty where a row is missing.
struct DecodeSummary {
  std::string content = {};
  std::string precision = {};
  std::int64_t batch = 1;
  std::int64_t first_position = 0, last_position = 0;    // the smallest and the largest
  double last_over_first = 1.0;                          // seconds of a step there
  double step_over_read = 0.0;                           // at the last position
  std::optional<double> rerun_over_step = std::nullopt;  // at the last position
};
std::vector<DecodeSummary> summarise_decoding(const std::vector<Row>& rows);

}  // namespace routing::bench
