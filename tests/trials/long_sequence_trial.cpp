// One long sequence over ranks: time, memory and bytes of each rank. Not a ctest entry; docs/long-sequences.md has
// results.
//
//   long_sequence_trial TOKENS CLUSTERS            alone, by the ordinary pass over the whole sequence
//   RANK=r WORLD_SIZE=N MASTER_ADDR=127.0.0.1 MASTER_PORT=p long_sequence_trial TOKENS CLUSTERS
//                                                  as one of N processes, each with one thread
//
// The model has 2 layers of width 512 with 4 local and 4 routed heads (`nearest`), windows of 256 keys, untrained. One
// line: rank, tokens of its piece, seconds, seconds of the processor, seconds of waiting, peak memory above that of the
// model, bytes sent, nats of the whole sequence.
#include "bench/memory.h"
#include "routing/core/parallel.h"
#include "routing/core/random.h"
#include "routing/distributed/rendezvous.h"
#include "routing/evaluation/likelihood.h"
#include "routing/evaluation/sequence_likelihood.h"
#include "routing/model/transformer.h"

#include <ATen/Parallel.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <memory>
#include <vector>

namespace {

using namespace routing;

ExperimentConfig long_experiment(std::int64_t tokens, std::int64_t clusters) {
  ExperimentConfig config;
  config.name = "long sequence";
  config.model.vocab_size = 256;
  config.model.layers = 2;
  config.model.width = 512;
  config.model.feedforward_width = 1024;
  config.attention.heads = 8;
  config.attention.content_heads = 4;
  std::get<LocalPattern>(config.patterns.local.pattern).window = 256;
  config.routing.routing().selection = RoutingSelection::nearest;
  config.routing.routing().clusters = clusters;
  config.routing.routing().window = 256;
  config.train.sequence_length = tokens;
  return config;
}

SequenceLikelihood whole_pass(TransformerImpl& model, const std::vector<std::uint8_t>& ids) {
  const at::NoGradGuard no_gradient;
  model.eval();
  at::Tensor tokens = at::empty({1, static_cast<std::int64_t>(ids.size())}, at::kLong);
  std::copy(ids.begin(), ids.end(), tokens.data_ptr<std::int64_t>());
  SequenceLikelihood result{.nats = model.loss(tokens, {}).nats[0], .end = tokens.size(1)};
  NatsSum sum;
  for (std::int64_t i = 0; i < result.end; ++i) sum.add(result.nats.data_ptr<float>()[i]);
  result.total = sum.total();
  return result;
}

void run(std::int64_t tokens, std::int64_t clusters) {
  set_num_threads(1);
  at::set_num_threads(1);
  const auto place = rank_place();
  std::unique_ptr<RankSession> session;
  if (place) session = std::make_unique<RankSession>(*place, RankOptions{});
  Transformer model(long_experiment(tokens, clusters), at::TensorOptions().dtype(at::kFloat));
  std::vector<std::uint8_t> ids(static_cast<std::size_t>(tokens));
  RandomStream stream(1, "long sequence");
  for (std::uint8_t& id : ids) id = static_cast<std::uint8_t>(stream.below(256));
  SequenceLikelihood result;
  const auto read = [&] {
    result = session ? sequence_likelihood(*model, ids, {.ranks = &session->group()}) : whole_pass(*model, ids);
  };
  const std::int64_t before = bench::resident_bytes();
  const auto begin = std::chrono::steady_clock::now();
  const std::clock_t busy = std::clock();
  const auto peak = bench::peak_bytes_above(before, read);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf(
      "rank %d: %lld tokens, %.2f s (%.2f s of the processor), waited %.2f s, %.1f MiB, sent %.2f MB, %.17g nats\n",
      place ? place->rank : 0, static_cast<long long>(result.end - result.begin), seconds,
      static_cast<double>(std::clock() - busy) / CLOCKS_PER_SEC, result.waiting_seconds,
      static_cast<double>(peak.value_or(0)) / 1048576.0, static_cast<double>(result.bytes_sent) / 1e6, result.total);
  if (session) session->finish();
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) {
    std::fprintf(stderr, "usage: long_sequence_trial TOKENS CLUSTERS\n");
    return 2;
  }
  try {
    run(std::atoll(words[1]), std::atoll(words[2]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "long_sequence_trial: %s\n", error.what());
    return 1;
  }
  return 0;
}
