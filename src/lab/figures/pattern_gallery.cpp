#include "lab/figures/pattern_gallery.h"

#include "routing/attention/patterns/pattern.h"
#include "routing/attention/routing/centroids.h"
#include "routing/core/error.h"
#include "routing/core/random.h"
#include "routing/ops/random_fill.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace routing {
namespace {

constexpr std::int64_t kDim = 16;
constexpr std::int64_t kDirections = 6;
constexpr double kNoise = 0.25;
constexpr std::uint64_t kTrainingSteps = 100;

// Runs of tokens around one of a few directions, [1, 1, n, kDim], normalised as routing does: neighbours often belong
// together, and each direction comes back later. `draw` names one of many such sequences over the same directions.
at::Tensor mixture(std::int64_t n, std::int64_t run, std::uint64_t seed, std::uint64_t draw) {
  at::Tensor directions = at::empty({kDirections, kDim}, at::kDouble);
  fill_normal(directions, 0.0, 1.0, RandomStream(seed, "gallery directions"));
  at::Tensor tokens = at::empty({n, kDim}, at::kDouble);
  fill_normal(tokens, 0.0, kNoise, RandomStream(seed, "gallery noise", {draw}));
  RandomStream stream(seed, "gallery runs", {draw});
  for (std::int64_t first = 0; first < n; first += run) {
    const std::int64_t direction = stream.below(kDirections);
    tokens.narrow(0, first, std::min(run, n - first)) += directions[direction];
  }
  return at::layer_norm(tokens, {kDim}).view({1, 1, n, kDim});
}

struct GalleryEntry {
  std::string title;
  std::string caption;
  HeadGroupConfig group;
};

std::vector<GalleryEntry> position_entries(std::int64_t root, bool causal) {
  const std::string w = std::to_string(root);
  const std::int64_t summary = std::max<std::int64_t>(1, root / 4);
  // Pixels of three tokens: a square image, and small blocks.
  const std::int64_t width = std::max<std::int64_t>(1, 5 * root / 8);
  const std::int64_t side = std::max<std::int64_t>(1, root / 4);
  const std::string b = std::to_string(side);
  const auto either = [&](const std::string& first, const std::string& second) { return causal ? first : second; };
  return {
      {"full", either("every j <= i", "every j"), {.pattern = FullPattern{}}},
      {"local, sliding", either("i - " + w + " < j <= i", "|i - j| < " + w), {.pattern = LocalPattern{.window = root}}},
      {"local, block",
       either("own and previous block of " + w, "own block of " + w + " and both neighbours"),
       {.pattern = LocalPattern{.form = LocalForm::block, .window = root}}},
      {"span",
       either("learned: i - j < z + ramp, here " + w, "learned: |i - j| < z + ramp, here " + w),
       {.pattern = SpanPattern{.limit = root, .ramp = std::max<std::int64_t>(1, root / 2), .initial = 0.5}}},
      {"strided",
       either("(i - j) mod " + w + " = 0, j <= i", "(i - j) mod " + w + " = 0"),
       {.pattern = StridedPattern{.stride = root}}},
      {"fixed",
       "j mod " + w + " >= " + std::to_string(root - summary) + either(", j <= i", ""),
       {.pattern = FixedPattern{.stride = root, .summary = summary}}},
      {"local, 2 dimensions",
       "blocks of " + b + " x " + b + " pixels and 1 around, " + std::to_string(width) + " wide",
       {.pattern = Local2dPattern{.rows = side, .columns = side, .above = 1, .beside = 1, .image_width = width}}},
      {"random",
       w + " groups of " + w + " random positions",
       {.pattern = RandomPattern{.groups = root, .window = root}}},
  };
}

std::vector<GalleryEntry> content_entries(std::int64_t n, std::int64_t root, bool causal) {
  const std::int64_t best = (n + kDirections - 1) / kDirections;
  const std::string two_w = std::to_string(2 * root);
  const std::string window = causal ? "last " + two_w + " of its cluster" : two_w + " on either side";
  const auto routing = [&](RoutingSelection selection, std::int64_t members) {
    return HeadGroupConfig{.pattern = RoutingPattern{.selection = selection,
                                                     .clusters = kDirections,
                                                     .window = members,
                                                     .decay = 0.9,
                                                     .init = CentroidInit::first_batch_kmeans},
                           .shared_query_key = true};
  };
  return {
      {"LSH",
       "8 buckets, " + (causal ? "last " + two_w + " of its bucket" : two_w + " on either side"),
       {.pattern = LshPattern{.buckets = 8, .window = 2 * root}, .shared_query_key = true}},
      {"routing, balanced",
       "the " + std::to_string(best) + " best of each centroid" + (causal ? ": reads the future" : ""),
       routing(RoutingSelection::balanced, best)},
      {"routing, nearest", "one cluster per token, " + window, routing(RoutingSelection::nearest, 2 * root)},
      {"routing, threshold", "clusters it passes, " + window, routing(RoutingSelection::threshold, 2 * root)},
  };
}

// Centroids and thresholds that have seen some of the mixture.
void train_centroids(Pattern& pattern, std::int64_t n, std::int64_t run, std::uint64_t seed) {
  if (pattern.centroids() == nullptr) return;
  for (std::uint64_t step = 1; step <= kTrainingSteps; ++step) {
    pattern.plan({.layout = self_layout(1, 1, n), .queries = mixture(n, run, seed, step), .training = true});
    pattern.centroids()->update();
  }
}

}  // namespace

PatternPanel panel_of_plan(const Plan& plan, std::string title, std::string caption, std::int64_t head) {
  PatternPanel panel;
  panel.title = std::move(title);
  panel.caption = std::move(caption);
  panel.num_queries = plan.num_queries;
  panel.num_keys = plan.num_keys;
  const auto cells = static_cast<std::size_t>(panel.num_queries * panel.num_keys);
  panel.group.assign(cells, -1);
  panel.count.assign(cells, 0);
  const at::Tensor masks = plan.to_dense_masks(0, head);
  for (std::int64_t group = 0; group < masks.size(0); ++group) {
    const auto* mask = masks.data_ptr<bool>() + group * panel.num_queries * panel.num_keys;
    for (std::size_t cell = 0; cell < cells; ++cell) {
      if (!mask[cell]) continue;
      if (panel.count[cell] == 0) panel.group[cell] = static_cast<std::int32_t>(group);
      ++panel.count[cell];
    }
  }
  return panel;
}

Plan plan_over_mixture(const HeadGroupConfig& group, const MixtureOptions& options) {
  const auto kind = options.causal ? AttentionKind::causal_self : AttentionKind::bidirectional_self;
  const auto pattern = make_pattern(
      group, {.kind = kind, .dim = kDim, .place = {.seed = options.seed}, .options = at::TensorOptions(at::kDouble)});
  train_centroids(*pattern, options.n, options.run, options.seed);
  const at::Tensor tokens = mixture(options.n, options.run, options.seed, 0);
  return pattern->plan({.layout = self_layout(1, 1, options.n), .queries = tokens});
}

PatternFigure pattern_gallery(std::int64_t n, std::uint64_t seed) {
  require<ConfigError>(n >= kShortestGallery && n <= kLongestGallery, "analyze patterns: n is ", n,
                       ", but a picture that can be read has ", kShortestGallery, " to ", kLongestGallery, " tokens");
  const auto root = static_cast<std::int64_t>(std::lround(std::sqrt(static_cast<double>(n))));
  const std::int64_t run = std::max<std::int64_t>(1, root / 2);
  PatternFigure figure{
      .title = "Which keys does each query read? Attention patterns over " + std::to_string(n) + " tokens", .rows = {}};
  for (const bool causal : {true, false}) {
    for (const bool by_content : {false, true}) {
      PatternFigure::Row row{.label = causal ? "causal" : "bidirectional", .panels = {}};
      for (const GalleryEntry& entry : by_content ? content_entries(n, root, causal) : position_entries(root, causal)) {
        const Plan plan = plan_over_mixture(entry.group, {.n = n, .run = run, .seed = seed, .causal = causal});
        row.panels.push_back(panel_of_plan(plan, entry.title, entry.caption));
      }
      figure.rows.push_back(std::move(row));
    }
  }
  return figure;
}

}  // namespace routing
