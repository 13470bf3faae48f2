#include "lab/leak/leak_tasks.h"

#include "lab/measure/statistics.h"
#include "routing/core/error.h"
#include "routing/core/random.h"
#include "routing/training/learner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>
#include <string>
#include <variant>

namespace routing {
namespace {

constexpr std::int64_t kSymbols = 15;
constexpr std::int64_t kMarker = kSymbols + 1;
constexpr std::int64_t kHeads = 4;
constexpr std::int64_t kContentHeads = 2;
constexpr std::int64_t kLayers = 2;
constexpr std::int64_t kHeldOutRows = 256;  // scored at once

void fit_window(PatternConfig& pattern, const LeakTaskSizes& sizes) {
  std::visit(
      [&](auto& each) {
        if constexpr (requires { each.window; }) each.window = sizes.window;
        if constexpr (requires { each.clusters; }) each.clusters = sizes.clusters;
        if constexpr (requires { each.groups; }) each.groups = sizes.clusters;
        if constexpr (requires { each.buckets; }) each.buckets = sizes.clusters;
        if constexpr (requires { each.stride; }) each.stride = sizes.window;
        if constexpr (requires { each.summary; }) each.summary = std::min(each.summary, sizes.window / 2);
        if constexpr (requires { each.limit; }) each.limit = sizes.window;
        if constexpr (requires { each.ramp; }) each.ramp = std::min(each.ramp, sizes.window);
        // More than there are clusters now; half of them still leave something to choose.
        if constexpr (requires { each.target_share; }) {
          if (each.target_share > static_cast<double>(each.clusters)) {
            each.target_share = 0.5 * static_cast<double>(each.clusters);
          }
        }
      },
      pattern);
}

void draw_coin_flips(RandomStream& stream, std::span<std::int64_t> row) {
  for (std::int64_t& token : row) token = stream.below(2);
}

// Returns the place of the secret.
std::int64_t draw_secret(RandomStream& stream, std::span<std::int64_t> row) {
  const auto symbol = [&] { return 1 + static_cast<std::int64_t>(stream.below(kSymbols)); };
  const std::size_t half = row.size() / 2;
  for (std::size_t i = 0; i < half; ++i) row[i] = symbol();
  const std::int64_t secret = symbol();
  std::fill(row.begin() + static_cast<std::ptrdiff_t>(half), row.end(), secret);
  // In the second quarter: some random symbols stand before it, so that there are memberships to lose.
  const std::size_t place = half / 2 + stream.below(static_cast<std::uint32_t>(half - half / 2));
  row[place - 1] = kMarker;
  row[place] = secret;
  return static_cast<std::int64_t>(place);
}

// Nats of each held-out sequence: a token, or of its secret.
std::vector<double> held_out_nats(SequenceModel& model, const LeakTaskOptions& options) {
  const at::NoGradGuard no_gradient;
  std::vector<double> result;
  for (std::int64_t first = 0; first < options.sizes.held_out; first += kHeldOutRows) {
    const std::int64_t rows = std::min(kHeldOutRows, options.sizes.held_out - first);
    const LeakTaskBatch batch = leak_task_batch(options, LeakTaskPart::held_out, first, rows);
    const at::Tensor nats = model.loss(batch.tokens, {.sample_ids = at::arange(first, first + rows)}).nats.contiguous();
    const std::int64_t tokens = nats.size(1);
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::span<const float> of_row(nats.data_ptr<float>() + row * tokens, static_cast<std::size_t>(tokens));
      if (!batch.scored.empty()) {
        const std::int64_t place = batch.scored[static_cast<std::size_t>(row)];
        result.push_back(static_cast<double>(of_row[static_cast<std::size_t>(place)]));
        continue;
      }
      double sum = 0.0;
      for (const float value : of_row) sum += static_cast<double>(value);
      result.push_back(sum / static_cast<double>(tokens));
    }
  }
  return result;
}

}  // namespace

double entropy_floor(LeakTask task) {
  return task == LeakTask::coin_flips ? std::log(2.0) : std::log(static_cast<double>(kSymbols));
}

const std::vector<LeakTaskCase>& audit_tasks() {
  static const std::vector<LeakTaskCase> all{
      {.task = LeakTask::coin_flips,
       .sizes = {.tokens = 32, .window = 8, .width = 32, .batch_size = 32, .steps = 1500, .learning_rate = 2e-3}},
      {.task = LeakTask::secret,
       .sizes = {.tokens = 32, .window = 8, .width = 64, .batch_size = 16, .steps = 600, .learning_rate = 3e-3}},
      {.task = LeakTask::secret,
       .sizes = {.tokens = 128, .window = 32, .width = 64, .batch_size = 16, .steps = 400, .learning_rate = 3e-3}}};
  return all;
}

ExperimentConfig leak_task_config(const ExperimentConfig& audited, const LeakTaskOptions& options) {
  const LeakTaskSizes& sizes = options.sizes;
  require<ConfigError>(sizes.tokens >= 8 && sizes.held_out >= 2, "leak task: ", sizes.tokens, " tokens and ",
                       sizes.held_out, " held-out sequences, but it takes at least 8 and 2");
  ExperimentConfig config;
  config.name = audited.name + ", " + std::string(to_string(options.task));
  config.model = {.vocab_size = options.task == LeakTask::coin_flips ? 2 : kMarker + 1,
                  .layers = kLayers,
                  .width = sizes.width,
                  .feedforward_width = 4 * sizes.width,
                  .norm = audited.model.norm,
                  .feedforward = audited.model.feedforward,
                  .initial_scale = 1.0};
  // The tasks are texts, which have no rows: windows of two dimensions are those of one there.
  const PatternKind content = audited.attention.content;
  const bool has_content =
      content != PatternKind::local && content != PatternKind::local2d && audited.attention.content_heads > 0;
  config.attention = {.heads = kHeads,
                      .content_heads = has_content ? kContentHeads : 0,
                      .content = has_content ? content : PatternKind::local,
                      .content_layers = "all"};
  config.patterns = audited.patterns;
  config.routing = audited.routing;
  for (HeadGroupConfig* group :
       {&config.patterns.local, &config.patterns.full, &config.patterns.strided, &config.patterns.random,
        &config.patterns.lsh, &config.patterns.fixed, &config.patterns.span, &config.routing.group}) {
    fit_window(group->pattern, sizes);
    if (group->relative != RelativePosition::none) group->max_relative = sizes.window;
  }
  config.train.steps = sizes.steps;
  config.train.batch_size = sizes.batch_size;
  config.train.sequence_length = sizes.tokens;
  config.train.seed = options.seed;
  config.train.precision = Precision::fp32;
  config.train.learning_rate = sizes.learning_rate;
  config.train.warmup_steps = std::min<std::int64_t>(50, sizes.steps / 2);
  validate(config);
  return config;
}

LeakTaskBatch leak_task_batch(const LeakTaskOptions& options, LeakTaskPart part, std::int64_t first,
                              std::int64_t rows) {
  const std::int64_t tokens = options.sizes.tokens;
  LeakTaskBatch batch{.tokens = at::empty({rows, tokens}, at::kLong)};
  for (std::int64_t row = 0; row < rows; ++row) {
    RandomStream stream(options.seed, "leak task",
                        {static_cast<std::uint64_t>(options.task), static_cast<std::uint64_t>(part),
                         static_cast<std::uint64_t>(first + row)});
    const std::span<std::int64_t> ids(batch.tokens.data_ptr<std::int64_t>() + row * tokens,
                                      static_cast<std::size_t>(tokens));
    if (options.task == LeakTask::coin_flips) {
      draw_coin_flips(stream, ids);
    } else {
      batch.scored.push_back(draw_secret(stream, ids));
    }
  }
  return batch;
}

LeakTaskResult run_leak_task(const ExperimentConfig& audited, const LeakTaskOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const LeakTaskSizes& sizes = options.sizes;
  Learner learner(leak_task_config(audited, options));
  for (std::int64_t step = 0; step < sizes.steps; ++step) {
    const std::int64_t first = step * sizes.batch_size;
    const TokenBatch batch{.tokens = leak_task_batch(options, LeakTaskPart::training, first, sizes.batch_size).tokens,
                           .sample_ids = at::arange(first, first + sizes.batch_size),
                           .index = step};
    learner.step({&batch, 1});
    if (options.progress) options.progress(step + 1, sizes.steps);
  }
  learner.model().eval();
  const std::vector<double> nats = held_out_nats(learner.model(), options);
  const MeanInterval interval = mean_interval(nats);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return {.task = options.task,
          .sizes = sizes,
          .seed = options.seed,
          .nats = interval.mean,
          .half_width = interval.half_width,
          .floor = entropy_floor(options.task),
          .seconds = seconds.count()};
}

}  // namespace routing
