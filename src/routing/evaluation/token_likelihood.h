// How likely does a model find a text or images? Every token is predicted exactly once; nothing is dropped at the end.
#pragma once

#include "routing/data/token_view.h"
#include "routing/distributed/group/rank_group.h"
#include "routing/evaluation/likelihood.h"
#include "routing/model/sequence_model.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace routing {

struct LikelihoodOptions {
  std::int64_t sequence_length = 2048;
  // New tokens per window: sequence_length - stride tokens before them are context only. 0 means disjoint windows, each
  // starting without context.
  std::int64_t stride = 0;
  std::int64_t batch_size = 4;
  std::int64_t limit_tokens = 0;   // only the first so many; 0 means all
  std::int64_t record_length = 0;  // of images: each is one window of its first sequence_length tokens; 0 for text
  // Tokens that layers remember of the windows before; absent means as many as the model's configuration says
  // (eval.memory). More than 0 makes the text one stream: windows are disjoint and are read one after the other,
  // whatever batch_size is.
  std::optional<std::int64_t> memory = std::nullopt;
  MatmulPrecision precision = MatmulPrecision::fp32;
  // Batches of windows go round the ranks, which must all call; each gets the result of all, the same bits as of one.
  RankGroup* ranks = nullptr;
  // Every window is split over the ranks instead, a piece for each (sequence_likelihood.h): the same bits again, for
  // windows whose activations one rank does not hold. Of what routed heads saw there are no statistics then.
  bool split_windows = false;
  std::function<void(std::int64_t windows_done, std::int64_t windows)> progress = {};
  // Called for every window in its order, of several ranks each for its own; where windows are split, for all on each.
  std::function<void(const ScoredWindow&)> scored = {};
};

struct Likelihood {
  double nats = 0.0;  // summed over all scored tokens
  std::int64_t tokens = 0;
  std::int64_t windows = 0;
  std::int64_t sequence_length = 0;
  std::int64_t stride = 0;                    // new tokens per window; sequence_length for disjoint windows
  std::int64_t memory = 0;                    // tokens that layers remembered of windows before
  std::vector<LayerStatistics> routing = {};  // over the windows; empty without routed heads
  // Of windows that are split, by this rank.
  std::int64_t bytes_sent = 0;
  double waiting_seconds = 0.0;

  double nats_per_token() const { return nats / static_cast<double>(tokens); }
};

// Puts the model into evaluation mode for the time of the call. Bits do not depend on threads or batch_size.
Likelihood token_likelihood(SequenceModel& model, TokenView tokens, const LikelihoodOptions& options);

// The smallest relative occupancy entropy over layers and heads; 1 is perfectly even. Of nothing it is 1.
double smallest_occupancy_entropy(const std::vector<LayerStatistics>& routing);

}  // namespace routing
