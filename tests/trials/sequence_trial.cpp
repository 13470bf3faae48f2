// Does the encoder-decoder learn to copy and to reverse? Trains a preset and prints the share of target tokens right.
//
//   sequence_trial --preset tiny-copy [--set key=value]… [--threads N] [--pairs N]
//
// Targets are predicted with the true ones before them read (teacher forcing); what is scored are pairs of the valid
// part, which training never sees. Then again without the routed, and without the full heads that read the source. Ends
// with exit code 0 if more than 0.99 of the targets are right, otherwise 1.
#include "routing/config/resolve.h"
#include "routing/core/parallel.h"
#include "routing/evaluation/target_accuracy.h"
#include "routing/training/learner.h"
#include "routing/training/routing_summary.h"

#include <ATen/Parallel.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace routing;

struct Options {
  ConfigSources sources;
  int threads = 1;
  std::int64_t pairs = 32;
};

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

TrainingBatch training_batch(const SequencePairs& pairs, const TrainConfig& train, std::int64_t number) {
  const TokenBatch batch = token_batch(pairs.batch("train", number * train.batch_size, train.batch_size));
  return {.tokens = batch.tokens,
          .sample_ids = at::arange(train.batch_size, at::kLong) + number * train.batch_size,
          .index = number,
          .valid = batch.valid,
          .source = batch.source,
          .source_valid = batch.source_valid};
}

// Takes away what the cross-attention heads of one pattern say, in every layer, as long as it lives.
class Silenced {
 public:
  Silenced(EncoderDecoderImpl& model, const std::string& pattern) {
    const at::NoGradGuard no_gradient;
    for (std::int64_t layer = 0; layer < model.config().model.layers; ++layer) {
      const MultiHeadAttention cross = model.decoder_block(static_cast<std::size_t>(layer))->cross_attention();
      at::Tensor weight = cross->named_parameters()["output_weight"];
      before_.emplace_back(weight, weight.detach().clone());
      std::int64_t head = 0;
      for (const HeadGroupConfig& group : cross->config().head_groups) {
        const std::int64_t dim = head_dim(cross->config());
        if (pattern_name(group.pattern) == pattern) weight.slice(1, head * dim, (head + group.heads) * dim).zero_();
        head += group.heads;
      }
    }
  }
  ~Silenced() {
    const at::NoGradGuard no_gradient;
    for (auto& [weight, value] : before_) weight.copy_(value);
  }
  Silenced(const Silenced&) = delete;
  Silenced& operator=(const Silenced&) = delete;

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> before_;
};

int train(const Options& options) {
  const ExperimentConfig config = resolve(options.sources);
  const SequencePairs pairs(sequence_task_options(config));
  Learner learner(config);
  auto& model = dynamic_cast<EncoderDecoderImpl&>(learner.sequence_model());
  std::printf("%s, %lld parameters, %s, %s\n", config.name.c_str(), static_cast<long long>(model.num_parameters()),
              learner.precision() == MatmulPrecision::bf16 ? "bf16" : "fp32", validity_label(config).c_str());
  const auto score = [&](const char* part, std::int64_t count) {
    return score_pairs(
        model, pairs,
        {.part = part, .pairs = count, .batch_size = config.eval.batch_size, .precision = learner.precision()});
  };
  const auto begin = std::chrono::steady_clock::now();
  for (std::int64_t step = 1; step <= config.train.steps; ++step) {
    std::vector<TrainingBatch> batches;
    for (std::int64_t i = 0; i < config.train.accumulation; ++i) {
      batches.push_back(training_batch(pairs, config.train, (step - 1) * config.train.accumulation + i));
    }
    const StepResult result = learner.step(batches);
    if (step % config.train.log_every != 0) continue;
    std::printf("step %5lld  %6.1f s  loss %.4f  rate %.5f  gradient %.3f", static_cast<long long>(step),
                seconds_since(begin), result.loss_nats, result.learning_rate, result.gradient_norm);
    if (config.train.eval_every > 0 && step % config.train.eval_every == 0) {
      std::printf("  right %.4f", score("valid", 4).accuracy());
      for (const auto& [name, value] : routing_summary(result.routing)) {
        if (name == "occupancy_entropy_min" || name == "memberships") std::printf("  %s %.2f", name.c_str(), value);
      }
    }
    std::printf("\n");
    std::fflush(stdout);
    if (config.train.minutes > 0.0 && seconds_since(begin) > 60.0 * config.train.minutes) break;
  }
  const double seconds = seconds_since(begin);
  const TargetScore last = score("valid", options.pairs);
  std::printf("result %s seed %llu: %lld steps, %.0f s, %.5f of %lld target tokens right, %.4f nats a token\n",
              config.name.c_str(), static_cast<unsigned long long>(config.train.seed),
              static_cast<long long>(learner.steps_done()), seconds, last.accuracy(),
              static_cast<long long>(last.tokens), last.nats_per_token());
  for (const char* pattern : {"routing", "full"}) {
    const Silenced silenced(model, pattern);
    std::printf("  without what the %s heads of cross-attention say: %.5f\n", pattern, score("valid", 8).accuracy());
  }
  return last.accuracy() > 0.99 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int index = 1; index < argc; index += 2) {
    const std::string option = argv[index];
    const bool known = option == "--preset" || option == "--set" || option == "--threads" || option == "--pairs";
    if (index + 1 == argc || !known) {
      std::fprintf(stderr, "sequence_trial: error: %s is not known or has no value; see the head of the source\n",
                   argv[index]);
      return 2;
    }
    const std::string value = argv[index + 1];
    if (option == "--preset") options.sources.preset = value;
    if (option == "--set") options.sources.settings.push_back(value);
    if (option == "--threads") options.threads = std::atoi(value.c_str());
    if (option == "--pairs") options.pairs = std::atoll(value.c_str());
  }
  set_num_threads(options.threads);
  at::set_num_threads(options.threads);
  try {
    return train(options);
  } catch (const Error& error) {
    std::fprintf(stderr, "sequence_trial: error: %s\n", error.what());
    return 2;
  }
}
