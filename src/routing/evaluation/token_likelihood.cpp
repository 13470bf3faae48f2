#include "routing/evaluation/token_likelihood.h"

#include "routing/config/memory_rules.h"
#include "routing/core/error.h"
#include "routing/data/windows.h"
#include "routing/distributed/totals_exchange.h"
#include "routing/evaluation/evaluation_mode.h"
#include "routing/evaluation/likelihood.h"
#include "routing/evaluation/sequence_likelihood.h"
#include "routing/model/model_memory.h"

#include <algorithm>

namespace routing {
namespace {

// The windows first … first + count - 1, all of one length, as tokens [count, length].
at::Tensor window_tokens(TokenView text, std::span<const EvalWindow> windows) {
  const std::int64_t length = windows.front().length;
  at::Tensor tokens = at::empty({static_cast<std::int64_t>(windows.size()), length}, at::kLong);
  auto* out = tokens.data_ptr<std::int64_t>();
  for (const EvalWindow& window : windows) {
    text.copy(window.begin, std::span(out, static_cast<std::size_t>(length)));
    out += length;
  }
  return tokens;
}

// One window after the other, each split over all ranks.
void read_split_windows(SequenceModel& model, TokenView tokens, std::span<const EvalWindow> windows,
                        const LikelihoodOptions& options, Likelihood& result) {
  NatsSum all;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const EvalWindow& window = windows[i];
    const SequenceLikelihood read = sequence_likelihood(model, tokens.part(window.begin, window.length),
                                                        {.ranks = options.ranks, .precision = options.precision});
    const std::span nats(read.nats.data_ptr<float>(), static_cast<std::size_t>(window.length));
    NatsSum sum;
    for (std::int64_t token = window.scored_from; token < window.length; ++token) {
      sum.add(static_cast<double>(nats[static_cast<std::size_t>(token)]));
    }
    all.add(sum.total());
    result.tokens += window.length - window.scored_from;
    result.bytes_sent += read.bytes_sent;
    result.waiting_seconds += read.waiting_seconds;
    if (options.scored) {
      const at::Tensor ids = window_tokens(tokens, windows.subspan(i, 1));
      options.scored(
          {.tokens = {ids.data_ptr<std::int64_t>(), nats.size()}, .nats = nats, .scored_from = window.scored_from});
    }
    if (options.progress) options.progress(static_cast<std::int64_t>(i) + 1, result.windows);
  }
  result.nats = all.total();
}

}  // namespace

Likelihood token_likelihood(SequenceModel& model, TokenView tokens, const LikelihoodOptions& options) {
  require<InputError>(!tokens.empty(), "evaluation: there are no tokens, but at least 1 is needed");
  require<InputError>(options.batch_size >= 1, "evaluation: batch_size is ", options.batch_size,
                      ", but must be at least 1");
  const std::vector<EvalWindow> windows =
      options.record_length > 0
          ? record_windows(tokens.size(), options.record_length, options.sequence_length, options.limit_tokens)
          : evaluation_windows(tokens.size(), options.sequence_length, options.stride, options.limit_tokens);
  ModelMemory memory{.length = options.memory.value_or(evaluation_memory(model.config()))};
  const bool remembers = memory.length > 0;
  if (remembers) {
    ExperimentConfig asked = model.config();
    asked.train.sequence_length = options.sequence_length;
    asked.eval.stride = options.stride;
    asked.eval.memory = memory.length;
    validate_memory(asked);
  }
  // One after the other; of several ranks the first reads them all.
  const std::int64_t batch_size = remembers ? 1 : options.batch_size;
  const EvaluationMode mode(model);
  const at::NoGradGuard no_gradient;
  model.take_evaluation_statistics();
  Likelihood result{
      .windows = static_cast<std::int64_t>(windows.size()),
      .sequence_length = options.sequence_length,
      .stride = options.stride > 0 && options.record_length == 0 ? options.stride : options.sequence_length,
      .memory = memory.length};
  if (options.split_windows) {
    require<ConfigError>(!remembers, model.config().name, ": windows are read one after the other with a memory of ",
                         memory.length, " tokens, so none of them can be split over ranks; evaluate them whole");
    read_split_windows(model, tokens, windows, options, result);
    return result;
  }
  // Of each window, 0 for those of other ranks: adding zeros changes nothing.
  const at::Tensor window_nats = at::zeros({result.windows}, at::kDouble);
  std::int64_t batches = 0;
  for (std::size_t first = 0; first < windows.size();) {
    std::size_t count = 1;
    while (count < static_cast<std::size_t>(batch_size) && first + count < windows.size() &&
           windows[first + count].length == windows[first].length) {
      ++count;
    }
    const auto batch = std::span(windows).subspan(first, count);
    const int turn = remembers || options.ranks == nullptr ? 0 : static_cast<int>(batches++ % options.ranks->size());
    const bool mine = options.ranks == nullptr || turn == options.ranks->rank();
    if (!mine) {
      first += count;
      continue;
    }
    const at::Tensor ids = window_tokens(tokens, batch);
    const ForwardContext context{.precision = options.precision, .memory = remembers ? &memory : nullptr};
    const at::Tensor nats = model.loss(ids, context).nats;
    const auto* id = ids.data_ptr<std::int64_t>();
    const auto* values = nats.data_ptr<float>();
    auto* total = window_nats.data_ptr<double>() + first;
    for (const EvalWindow& window : batch) {
      NatsSum sum;
      for (std::int64_t i = window.scored_from; i < window.length; ++i) sum.add(static_cast<double>(values[i]));
      *total++ = sum.total();
      if (options.scored) {
        const auto length = static_cast<std::size_t>(window.length);
        options.scored({.tokens = {id, length}, .nats = {values, length}, .scored_from = window.scored_from});
      }
      id += window.length;
      values += window.length;
    }
    first += count;
    if (options.progress) options.progress(static_cast<std::int64_t>(first), result.windows);
  }
  if (options.ranks != nullptr) {
    options.ranks->sum(window_nats);
    share_evaluated_totals(*options.ranks, model);
  }
  NatsSum sum;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    sum.add(window_nats.data_ptr<double>()[i]);
    result.tokens += windows[i].length - windows[i].scored_from;
  }
  result.nats = sum.total();
  result.routing = model.take_evaluation_statistics();
  return result;
}

double smallest_occupancy_entropy(const std::vector<LayerStatistics>& routing) {
  double smallest = 1.0;
  for (const LayerStatistics& layer : routing) {
    for (const double entropy : layer.statistics.occupancy_entropy) smallest = std::min(smallest, entropy);
  }
  return smallest;
}

}  // namespace routing
