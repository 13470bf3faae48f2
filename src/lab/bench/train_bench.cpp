#include "lab/bench/train_bench.h"

#include "lab/measure/flops.h"
#include "lab/measure/memory.h"
#include "routing/core/error.h"
#include "routing/core/random.h"
#include "routing/data/sources/byte_corpus.h"
#include "routing/ops/attend/visibility.h"
#include "routing/ops/dense/packed_weights.h"
#include "routing/training/learner.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>

namespace routing::bench {
namespace {

// The first sets thresholds; the second fills caches with what the first changed.
constexpr int kStepsBeforehand = 2;

// Batches of one model: the bytes of a file from its beginning on, or random ones, over and over.
class Batches {
 public:
  Batches(const TrainBench& bench, std::int64_t batches) {
    const TrainConfig& train = bench.config.train;
    const std::int64_t size = train.batch_size * train.sequence_length;
    std::unique_ptr<ByteCorpus> corpus;
    if (!bench.data.empty()) {
      corpus = std::make_unique<ByteCorpus>(bench.data);
      require<InputError>(corpus->size() >= size, bench.data.string(), ": ", corpus->size(),
                          " bytes, but a batch takes ", size, "; lower `train.sequence_length` or `train.batch_size`");
    }
    const std::int64_t most = corpus ? corpus->size() / size : batches;
    RandomStream stream(train.seed, "bench bytes");
    const auto values = static_cast<std::uint32_t>(std::min<std::int64_t>(bench.config.model.vocab_size, 256));
    for (std::int64_t index = 0; index < std::min(batches, most); ++index) {
      TokenBatch batch{.tokens = at::empty({train.batch_size, train.sequence_length}, at::kLong),
                       .sample_ids = at::arange(train.batch_size, at::kLong) + index * train.batch_size,
                       .index = index};
      auto* const tokens = batch.tokens.data_ptr<std::int64_t>();
      for (std::int64_t token = 0; token < size; ++token) {
        tokens[token] = corpus ? corpus->bytes()[static_cast<std::size_t>(index * size + token)] : stream.below(values);
      }
      batches_.push_back(batch);
    }
  }

  std::vector<TokenBatch> next(std::int64_t count) {
    std::vector<TokenBatch> chosen;
    for (std::int64_t each = 0; each < count; ++each) chosen.push_back(batches_[next_++ % batches_.size()]);
    return chosen;
  }

 private:
  std::vector<TokenBatch> batches_;
  std::size_t next_ = 0;
};

struct Training {
  Training(const TrainBench& bench, const ExperimentConfig& config)
      : accumulation(config.train.accumulation), batches(bench, kDistinctBatches), learner(config) {}
  void step() { learner.step(batches.next(accumulation)); }

  static constexpr std::int64_t kDistinctBatches = 16;
  std::int64_t accumulation;
  Batches batches;
  Learner learner;
};

// What earlier models left packed would be dropped during this one's steps, or not, as the limit has it.
void forget_packed_weights() {
  const std::size_t limit = packed_weights_limit();
  set_packed_weights_limit(0);
  set_packed_weights_limit(limit);
}

ExperimentConfig config_of(const TrainBench& bench, const std::string& content, const std::string& precision) {
  ExperimentConfig config = bench.config;
  config.attention.content = parse_word<PatternKind>(content, "attention.content");
  config.train.precision = parse_word<Precision>(precision, "train.precision");
  validate(config);
  return config;
}

// What the graph of one batch holds between its forward and its backward pass.
std::int64_t kept_bytes(Training& training) {
  const TokenBatch batch = training.batches.next(1).front();
  SequenceModel& model = training.learner.model();
  const std::int64_t before = allocated_bytes();
  const SequenceModel::Loss loss =
      model.loss({.tokens = batch.tokens}, {.sample_ids = batch.sample_ids, .precision = training.learner.precision()});
  const std::int64_t kept = allocated_bytes() - before;
  model.forget_collected();
  return kept;
}

Subject prepare(const TrainBench& bench, const ExperimentConfig& config) {
  forget_packed_weights();
  const std::int64_t before = resident_bytes();
  const auto training = std::make_shared<Training>(bench, config);
  for (int step = 0; step < kStepsBeforehand; ++step) training->step();
  Subject subject{.run = [training] { training->step(); }};
  const std::optional<std::int64_t> peak = peak_bytes_above(before, subject.run);
  const SequenceModel& model = training->learner.model();
  const PlanCost attention = attention_step_cost(model);
  const auto accumulation = static_cast<double>(config.train.accumulation);
  const std::int64_t tokens = config.train.batch_size * config.train.sequence_length;
  const bool routed = config.attention.content == PatternKind::routing;
  subject.row = {.bench = "train",
                 .pattern = std::string(to_string(config.attention.content)),
                 .n = config.train.sequence_length,
                 .heads = config.attention.heads,
                 .dim = head_dim(attention_of_layer(config, 0)),
                 .window = std::get<LocalPattern>(config.patterns.local.pattern).window,
                 .clusters = routed ? config.routing.routing().clusters : 0,
                 .batch = config.train.batch_size * config.train.accumulation,
                 .precision = std::string(to_string(config.train.precision)),
                 .pass = "step",
                 .pairs = attention.pairs * config.train.accumulation,
                 .flops = accumulation * (dense_step_flops(model, tokens) + attention.flops),
                 .peak_bytes = peak,
                 .kept_bytes = kept_bytes(*training)};
  return subject;
}

}  // namespace

double dense_step_flops(const SequenceModel& model, std::int64_t tokens) {
  constexpr double kProducts = 3.0;
  const bool tied = model.config().model.tied_output;
  double flops = 0.0;
  for (const auto& item : model.named_parameters()) {
    const std::string& name = item.key();
    const at::Tensor& weight = item.value();
    // Bands of rarer words and their projections read the few tokens that are among them, unknown here.
    const bool banded = name.find("_band") != std::string::npos || name.find("_projection") != std::string::npos;
    const bool places = name.find("relative_") != std::string::npos || name.find("position") != std::string::npos;
    const bool looked_up = banded || places || (name == "embedding" && !tied);
    if (weight.dim() != 2 || looked_up) continue;
    // The authors' extra map is applied to every head.
    const bool every_head = name.find("head_mix_weight") != std::string::npos;
    const std::int64_t rows = every_head ? tokens * model.config().attention.heads : tokens;
    flops += kProducts * product_flops(rows, weight.size(1), weight.size(0));
  }
  return flops;
}

PlanCost attention_step_cost(const SequenceModel& model) {
  PlanCost cost;
  for (std::size_t layer = 0; layer < model.states().size(); ++layer) {
    const std::int64_t dim = head_dim(attention_of_layer(model.config(), static_cast<std::int64_t>(layer)));
    for (const Plan& made : model.states()[layer].self.plans) {
      const std::int64_t pairs = attended_pairs(made);
      cost.pairs += pairs;
      cost.flops += attention_forward_flops(pairs, dim, dim) + attention_backward_flops(pairs, dim, dim);
    }
  }
  return cost;
}

std::vector<Row> bench_train(const TrainBench& bench) {
  require_enough_repeats(bench.runner);
  std::vector<ExperimentConfig> configs;
  for (const std::string& content : bench.contents) {
    for (const std::string& precision : bench.precisions) configs.push_back(config_of(bench, content, precision));
  }
  // Once for nothing: what the process keeps for good (threads, generated code) is not to be charged to the first
  // model.
  if (!configs.empty()) prepare(bench, configs.front());
  std::vector<Subject> subjects;
  subjects.reserve(configs.size());
  for (const ExperimentConfig& config : configs) subjects.push_back(prepare(bench, config));
  std::vector<Row> rows = measure(subjects, bench.runner);
  for (Row& row : rows) {
    const Row* const first = find_row(rows, [&](const Row& other) { return other.precision == row.precision; });
    row.ratio = row.seconds() / first->seconds();
  }
  return rows;
}

}  // namespace routing::bench
