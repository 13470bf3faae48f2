#include "lab/figures/model_patterns.h"

#include "lab/figures/pattern_gallery.h"
#include "routing/attention/patterns/local2d.h"
#include "routing/core/error.h"
#include "routing/model/absolute_positions.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

namespace routing {
namespace {

struct CaptionOf {
  std::string operator()(const FullPattern&) const { return "every j <= i"; }
  std::string operator()(const LocalPattern& local) const {
    const std::string window = std::to_string(local.window);
    if (local.form == LocalForm::sliding) return "i - " + window + " < j <= i";
    if (local.flange == 0) return "own block of " + window;
    if (local.flange == 1) return "own and previous block of " + window;
    return "own and " + std::to_string(local.flange) + " previous blocks of " + window;
  }
  std::string operator()(const StridedPattern& strided) const {
    return "(i - j) mod " + std::to_string(strided.stride) + " = 0";
  }
  std::string operator()(const RandomPattern& random) const {
    return std::to_string(random.groups) + " groups of " + std::to_string(random.window) + " random positions";
  }
  std::string operator()(const LshPattern& lsh) const {
    return std::to_string(lsh.buckets) + " buckets, last " + std::to_string(lsh.window) + " of its own";
  }
  std::string operator()(const RoutingPattern& routing) const {
    const std::string clusters = std::to_string(routing.clusters) + " clusters";
    const std::string window = std::to_string(routing.window);
    if (routing.selection == RoutingSelection::balanced) return clusters + " of their best " + window;
    return clusters + ", last " + window + " of its own";
  }
  std::string operator()(const FixedPattern& fixed) const {
    return "last " + std::to_string(fixed.summary) + " of every " + std::to_string(fixed.stride) + " tokens";
  }
  std::string operator()(const Local2dPattern& local) const {
    return "blocks of " + std::to_string(local.rows) + " x " + std::to_string(local.columns) + " pixels, " +
           std::to_string(local.above) + " rows above, " + std::to_string(local.beside) + " columns beside";
  }
  std::string operator()(const SpanPattern& span) const {
    return "a learned span of at most " + std::to_string(span.limit);
  }
};

struct WindowOf {
  std::int64_t operator()(const FullPattern&) const { return 0; }
  std::int64_t operator()(const StridedPattern& strided) const { return strided.stride; }
  std::int64_t operator()(const FixedPattern& fixed) const { return fixed.stride; }
  std::int64_t operator()(const Local2dPattern& local) const {
    return kPixelTokens * (local.rows + local.above) * local.image_width;
  }
  std::int64_t operator()(const SpanPattern& span) const { return span.limit; }
  // Local, random, LSH and routing.
  template <class Pattern>
  std::int64_t operator()(const Pattern& pattern) const {
    return pattern.window;
  }
};

bool is_wanted(const ModelPatternsOptions& options, std::int64_t head, bool first_of_group) {
  if (options.all_heads) return true;
  return options.head ? *options.head == head : first_of_group;
}

PatternFigure::Row row_of_layer(SequenceModel& model, std::size_t layer, const ModelPatternsOptions& options) {
  PatternFigure::Row row{.label = "layer " + std::to_string(layer), .panels = {}};
  const AttentionConfig& config = model.block(layer)->attention()->config();
  const std::vector<Plan>& plans = model.states()[layer].self.plans;
  std::int64_t first_head = 0;
  for (std::size_t group = 0; group < plans.size(); ++group) {
    const HeadGroupConfig& heads = config.head_groups[group];
    for (std::int64_t head = 0; head < heads.heads; ++head) {
      if (!is_wanted(options, first_head + head, head == 0)) continue;
      row.panels.push_back(
          panel_of_plan(plans[group], "head " + std::to_string(first_head + head) + ": " + pattern_name(heads.pattern),
                        pattern_caption(heads), head));
    }
    first_head += heads.heads;
  }
  require<ConfigError>(!row.panels.empty(), model.config().name, ": there is no head ", options.head.value_or(0),
                       " in layer ", layer, "; it has heads 0 to ", first_head - 1);
  return row;
}

}  // namespace

std::int64_t usual_pattern_tokens(const ExperimentConfig& config) {
  constexpr std::int64_t kWithoutWindow = 64;
  std::int64_t window = 0;
  for (std::int64_t layer = 0; layer < config.model.layers; ++layer) {
    for (const HeadGroupConfig& group : attention_of_layer(config, layer).head_groups) {
      window = std::max(window, std::visit(WindowOf{}, group.pattern));
    }
  }
  const std::int64_t tokens = window == 0 ? kWithoutWindow : std::clamp(2 * window, kShortestGallery, kLongestGallery);
  // Images and tables of positions end.
  const std::int64_t image = kPixelTokens * config.model.image_height * config.model.image_width;
  const std::int64_t longest = image > 0 ? image : longest_of_positions(config);
  return longest > 0 ? std::min(tokens, longest) : tokens;
}

std::string pattern_caption(const HeadGroupConfig& group) {
  return std::visit(CaptionOf{}, group.pattern);
}

PatternFigure model_patterns(SequenceModel& model, const at::Tensor& tokens, const ModelPatternsOptions& options) {
  const std::int64_t n = tokens.size(1);
  require<ConfigError>(n >= kShortestGallery && n <= kLongestGallery, "analyze patterns: n is ", n,
                       ", but a picture that can be read has ", kShortestGallery, " to ", kLongestGallery, " tokens");
  const auto layers = static_cast<std::int64_t>(model.states().size());
  require<ConfigError>(!options.layer || (*options.layer >= 0 && *options.layer < layers), model.config().name,
                       ": there is no layer ", options.layer.value_or(0), "; it has layers 0 to ", layers - 1);
  {
    const at::NoGradGuard no_gradient;
    const bool was_training = model.is_training();
    model.eval();
    model.loss(tokens, {.precision = options.precision});
    model.train(was_training);
    model.take_evaluation_statistics();
  }
  PatternFigure figure{.title = options.title, .rows = {}};
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    if (options.layer && *options.layer != layer) continue;
    figure.rows.push_back(row_of_layer(model, static_cast<std::size_t>(layer), options));
  }
  return figure;
}

}  // namespace routing
