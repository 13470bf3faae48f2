#include "routing/analysis/pattern_gallery.h"

#include "routing/attention/pattern.h"
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

// Runs of tokens around one of a few directions, [1, 1, n, kDim]: neighbours often belong together, and each direction
// comes back later.
at::Tensor mixture(std::int64_t n, std::int64_t run, std::uint64_t seed) {
  at::Tensor directions = at::empty({kDirections, kDim}, at::kDouble);
  fill_normal(directions, 0.0, 1.0, RandomStream(seed, "gallery directions"));
  at::Tensor tokens = at::empty({n, kDim}, at::kDouble);
  fill_normal(tokens, 0.0, kNoise, RandomStream(seed, "gallery noise"));
  RandomStream stream(seed, "gallery runs");
  for (std::int64_t first = 0; first < n; first += run) {
    const std::int64_t direction = stream.below(kDirections);
    tokens.narrow(0, first, std::min(run, n - first)) += directions[direction];
  }
  return tokens.view({1, 1, n, kDim});
}

struct GalleryEntry {
  std::string title;
  std::string caption;
  HeadGroupConfig group;
};

std::vector<GalleryEntry> gallery_entries(std::int64_t root, bool causal) {
  const std::string w = std::to_string(root);
  const std::string two_w = std::to_string(2 * root);
  const auto either = [&](const std::string& first, const std::string& second) { return causal ? first : second; };
  return {
      {"full", either("every j <= i", "every j"), {.pattern = FullPattern{}}},
      {"local, sliding", either("i - " + w + " < j <= i", "|i - j| < " + w), {.pattern = LocalPattern{.window = root}}},
      {"local, block",
       either("own and previous block of " + w, "own block of " + w + " and both neighbours"),
       {.pattern = LocalPattern{.form = LocalForm::block, .window = root}}},
      {"strided",
       either("(i - j) mod " + w + " = 0, j <= i", "(i - j) mod " + w + " = 0"),
       {.pattern = StridedPattern{.stride = root}}},
      {"random",
       w + " groups of " + w + " random positions",
       {.pattern = RandomPattern{.groups = root, .window = root}}},
      {"LSH",
       "8 buckets, " + either("last " + two_w + " of its bucket", two_w + " on either side"),
       {.pattern = LshPattern{.buckets = 8, .window = 2 * root}, .shared_query_key = true}},
  };
}

}  // namespace

PatternPanel panel_of_plan(const Plan& plan, std::string title, std::string caption) {
  PatternPanel panel;
  panel.title = std::move(title);
  panel.caption = std::move(caption);
  panel.num_queries = plan.num_queries();
  panel.num_keys = plan.num_keys();
  const auto cells = static_cast<std::size_t>(panel.num_queries * panel.num_keys);
  panel.group.assign(cells, -1);
  panel.count.assign(cells, 0);
  const at::Tensor masks = plan.to_dense_masks(0, 0);
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

PatternFigure pattern_gallery(std::int64_t n, std::uint64_t seed) {
  require<ConfigError>(n >= kShortestGallery && n <= kLongestGallery, "analyze patterns: n is ", n,
                       ", but a picture that can be read has ", kShortestGallery, " to ", kLongestGallery, " tokens");
  const auto root = static_cast<std::int64_t>(std::lround(std::sqrt(static_cast<double>(n))));
  const at::Tensor tokens = mixture(n, std::max<std::int64_t>(1, root / 2), seed);
  PatternFigure figure{
      .title = "Which keys does each query read? Attention patterns over " + std::to_string(n) + " tokens", .rows = {}};
  for (const bool causal : {true, false}) {
    PatternFigure::Row row{.label = causal ? "causal" : "bidirectional", .panels = {}};
    for (const GalleryEntry& entry : gallery_entries(root, causal)) {
      const auto pattern =
          make_pattern(entry.group, {.kind = causal ? AttentionKind::causal_self : AttentionKind::bidirectional_self,
                                     .dim = kDim,
                                     .place = {.seed = seed},
                                     .options = at::TensorOptions(at::kDouble)});
      row.panels.push_back(panel_of_plan(pattern->plan({.layout = self_layout(1, 1, n), .queries = tokens}),
                                         entry.title, entry.caption));
    }
    figure.rows.push_back(std::move(row));
  }
  return figure;
}

}  // namespace routing
