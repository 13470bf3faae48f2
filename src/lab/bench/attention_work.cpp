#include "lab/bench/attention_work.h"

#include "lab/measure/flops.h"
#include "routing/attention/patterns/span.h"
#include "routing/attention/routing/centroids.h"
#include "routing/config/routing_settings.h"
#include "routing/config/words.h"
#include "routing/core/error.h"
#include "routing/core/random.h"
#include "routing/ops/attend/visibility.h"
#include "routing/ops/layer_norm.h"
#include "routing/ops/random_fill.h"

#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>

namespace routing::bench {
namespace {

// The first update sets thresholds from quantiles, the others let them settle.
constexpr int kUpdatesBeforehand = 5;
constexpr double kSpreadInCluster = 0.5;  // of tokens around their centre, whose coordinates have deviation 1
constexpr double kNormEps = 1e-6;
constexpr std::int64_t kSummary = 8;  // tokens that sum up a cell (Child et al. 2019 have 8 to 32)

// [batch, n, heads, dim] seen as [batch, heads, n, dim]: how projections hand their heads over.
at::Tensor as_heads(const AttentionSizes& sizes, const at::Tensor& tokens) {
  return tokens.view({sizes.batch, sizes.n, sizes.heads, sizes.dim}).transpose(1, 2);
}

at::Tensor normal_heads(const AttentionSizes& sizes, std::uint64_t seed, std::string_view use) {
  at::Tensor tokens = at::empty({sizes.batch, sizes.n, sizes.heads * sizes.dim});
  fill_normal(tokens, 0.0, 1.0, RandomStream(seed, use));
  return as_heads(sizes, tokens);
}

at::Tensor clustered_heads(const AttentionSizes& sizes, std::uint64_t seed, std::string_view use) {
  at::Tensor centers = at::empty({sizes.clusters, sizes.heads * sizes.dim});
  fill_normal(centers, 0.0, 1.0, RandomStream(seed, "bench centers"));
  at::Tensor choice = at::empty({sizes.batch * sizes.n}, at::kLong);
  RandomStream stream(stream_key(seed, use), "bench choice");
  for (std::int64_t token = 0; token < choice.numel(); ++token) {
    choice.data_ptr<std::int64_t>()[token] = stream.below(static_cast<std::uint32_t>(sizes.clusters));
  }
  const at::Tensor noise = normal_heads(sizes, seed, use);
  const at::Tensor tokens = as_heads(sizes, centers.index_select(0, choice)) + kSpreadInCluster * noise;
  return layer_norm(tokens, {}, {}, kNormEps);
}

void require_sizes(const AttentionSizes& sizes) {
  for (const auto& [name, value] :
       {std::pair("batch", sizes.batch), std::pair("tokens", sizes.n), std::pair("heads", sizes.heads),
        std::pair("dim", sizes.dim), std::pair("window", sizes.window), std::pair("clusters", sizes.clusters)}) {
    require<ConfigError>(value >= 1, name, " is ", value, ", but it must be at least 1");
  }
  require<ConfigError>(sizes.window <= sizes.n, "window ", sizes.window, " is longer than the sequence of ", sizes.n,
                       " tokens; lower `window` or raise `n`");
}

// Square blocks with a flange as wide as they are: a pixel reads 3 x 1.5 b x 3 b values on average.
Local2dPattern image_blocks(const AttentionSizes& sizes) {
  constexpr double kValuesOfASide = 13.5;
  const auto root = [](double area) { return std::max<std::int64_t>(1, std::llround(std::sqrt(area))); };
  const std::int64_t side = root(static_cast<double>(sizes.window) / kValuesOfASide);
  return {.rows = side,
          .columns = side,
          .above = side,
          .beside = side,
          .image_width = root(static_cast<double>(sizes.n) / 3.0)};
}

HeadGroupConfig routed_heads(const std::string& selection, const AttentionSizes& sizes) {
  RoutingSettings settings =
      routing_preset(RoutingPreset::ours, {.heads = sizes.heads, .clusters = sizes.clusters, .window = sizes.window});
  set_routing_key(settings, "routing.selection", selection);
  return settings.group;
}

}  // namespace

const std::vector<std::string>& attention_patterns() {
  static const std::vector<std::string> names{"local",         "nearest", "threshold", "balanced", "full",
                                              "strided",       "random",  "lsh",       "fixed",    "local2d",
                                              "local_offsets", "span",    "memory"};
  return names;
}

HeadGroupConfig attention_heads(const std::string& pattern, const AttentionSizes& sizes) {
  require_word(pattern, "pattern", attention_patterns());
  require_sizes(sizes);
  HeadGroupConfig group{.heads = sizes.heads};
  if (pattern == "local" || pattern == "memory") group.pattern = LocalPattern{.window = sizes.window};
  if (pattern == "local_offsets") group.pattern = LocalPattern{.window = sizes.window};
  if (pattern == "span") {
    const std::int64_t ramp = std::min<std::int64_t>(SpanPattern{}.ramp, sizes.window);
    const double share = static_cast<double>(sizes.window - ramp) / static_cast<double>(sizes.n);
    group.pattern = SpanPattern{.limit = sizes.n, .ramp = ramp, .initial = share};
  }
  if (pattern == "local_offsets" || pattern == "span") {
    group.relative = RelativePosition::true_offset;
    group.max_relative = sizes.window;
  }
  if (pattern == "strided") group.pattern = StridedPattern{.stride = sizes.n / sizes.window};
  if (pattern == "fixed") {
    const std::int64_t summary = std::min(kSummary, sizes.window);
    group.pattern = FixedPattern{.stride = summary * sizes.n / sizes.window, .summary = summary};
  }
  if (pattern == "local2d") group.pattern = image_blocks(sizes);
  if (pattern == "random") group.pattern = RandomPattern{.groups = sizes.clusters, .window = sizes.window};
  if (pattern == "lsh") {
    group.pattern = LshPattern{.buckets = sizes.clusters, .rounds = 1, .window = sizes.window};
    group.shared_query_key = true;
    group.self = SelfRule::only_if_alone;
  }
  if (pattern == "nearest" || pattern == "threshold" || pattern == "balanced") group = routed_heads(pattern, sizes);
  validate_head_group("pattern " + pattern, group, AttentionKind::causal_self);
  return group;
}

AttentionWork::AttentionWork(const std::string& pattern, const AttentionSizes& sizes, std::uint64_t seed)
    : heads_(attention_heads(pattern, sizes)),
      sizes_(sizes),
      layout_(self_layout(sizes.batch, sizes.heads, sizes.n)),
      remembered_(pattern == "memory" ? sizes.n / 2 : 0),
      pattern_(make_pattern(heads_, {.kind = AttentionKind::causal_self,
                                     .dim = sizes.dim,
                                     .place = {.seed = seed, .part = "bench"},
                                     .options = at::TensorOptions().dtype(at::kFloat)})) {
  q_ = clustered_heads(sizes_, seed, "bench queries");
  if (!heads_.shared_query_key) k_ = clustered_heads(sizes_, seed, "bench keys");
  v_ = normal_heads(sizes_, seed, "bench values");
  if (heads_.relative != RelativePosition::none) {
    relative_key_ = at::empty({2 * heads_.max_relative + 1, sizes.dim});
    relative_value_ = at::empty_like(relative_key_);
    fill_normal(relative_key_, 0.0, 0.1, RandomStream(seed, "bench key table"));
    fill_normal(relative_value_, 0.0, 0.1, RandomStream(seed, "bench value table"));
  }
  output_gradient_ = normal_heads(sizes_, seed, "bench output gradient");
  Centroids* const centroids = pattern_->centroids();
  for (int update = 0; centroids != nullptr && update < kUpdatesBeforehand; ++update) {
    pattern_->plan({.layout = layout_, .queries = q_, .training = true});
    centroids->update();
  }
  const Plan plan = make_plan();
  pairs_ = attended_pairs(plan);
  if (centroids != nullptr) {
    const auto units = static_cast<double>(plan.batch * plan.heads * plan.num_queries);
    memberships_ = static_cast<double>(plan.query_index.group.numel()) / units;
  }
}

Plan AttentionWork::make_plan() const {
  Plan made =
      pattern_->plan({.layout = layout_, .queries = q_, .keys = k_, .training = true, .remembered = remembered_});
  // Nothing is to be learnt from the runs: every one makes the same plan.
  if (Centroids* const centroids = pattern_->centroids()) centroids->set_pending({});
  return made;
}

std::vector<at::Tensor> AttentionWork::leaves() const {
  std::vector<at::Tensor> leaves{q_.detach(), v_.detach()};
  if (k_.defined()) leaves.push_back(k_.detach());
  return leaves;
}

std::vector<at::Tensor> AttentionWork::learned() const {
  std::vector<at::Tensor> all = pattern_->parameters();
  for (const at::Tensor& table : {relative_key_, relative_value_}) {
    if (table.defined()) all.push_back(table);
  }
  return all;
}

at::Tensor AttentionWork::attend_over(const Plan& plan, const std::vector<at::Tensor>& leaves,
                                      MatmulPrecision precision) const {
  const AttendOptions options{.scale = heads_.scale.value_or(1.0 / std::sqrt(static_cast<double>(sizes_.dim))),
                              .merge = heads_.merge,
                              .merge_eps = heads_.merge_eps,
                              .relative = heads_.relative,
                              .relative_key = relative_key_,
                              .relative_value = relative_value_,
                              .precision = precision};
  const at::Tensor& k = leaves.size() == 3 ? leaves[2] : leaves[0];
  const SpanHeads* const span = pattern_->span_heads();
  if (span == nullptr) return attend(leaves[0], k, leaves[1], plan, options).output;
  return attend(SpanHeads::queries_with_span(leaves[0]), SpanHeads::keys_with_span(k), leaves[1], plan,
                span->with_span(options, sizes_.dim))
      .output;
}

void AttentionWork::run(Pass pass, MatmulPrecision precision) const {
  const Plan plan = make_plan();
  if (pass == Pass::plan) return;
  const bool backward = pass == Pass::forward_backward;
  const at::AutoGradMode gradients(backward);
  const std::vector<at::Tensor> inputs = leaves();
  std::vector<at::Tensor> differentiated = inputs;
  for (const at::Tensor& tensor : learned()) differentiated.push_back(tensor);
  for (const at::Tensor& input : differentiated) input.requires_grad_(backward);
  const at::Tensor output = attend_over(plan, inputs, precision);
  if (backward) torch::autograd::grad({output}, differentiated, {output_gradient_});
}

void run_small_once(const std::vector<std::string>& patterns, const std::vector<MatmulPrecision>& precisions) {
  for (const std::string& pattern : patterns) {
    const AttentionWork work(pattern, {.n = 128, .heads = 2, .dim = 16, .window = 16, .clusters = 8}, 1);
    for (const MatmulPrecision precision : precisions) work.run(Pass::forward_backward, precision);
  }
}

double attention_flops(Pass pass, std::int64_t pairs, std::int64_t dim) {
  if (pass == Pass::plan) return 0.0;
  const double forward = attention_forward_flops(pairs, dim, dim);
  return pass == Pass::forward ? forward : forward + attention_backward_flops(pairs, dim, dim);
}

Subject attention_subject(const std::string& pattern, const AttentionSizes& sizes,
                          const std::shared_ptr<const AttentionWork>& work, const TimedPass& timed) {
  return {.row = {.pattern = pattern,
                  .n = sizes.n,
                  .heads = sizes.heads,
                  .dim = sizes.dim,
                  .window = sizes.window,
                  .clusters = sizes.clusters,
                  .batch = sizes.batch,
                  .precision = std::string(to_string(timed.precision)),
                  .pass = std::string(to_string(timed.pass)),
                  .pairs = work->pairs(),
                  .flops = attention_flops(timed.pass, work->pairs(), sizes.dim),
                  .memberships = work->memberships()},
          .run = [work, timed] { work->run(timed.pass, timed.precision); }};
}

}  // namespace routing::bench
