#include "routing/attention/pattern.h"

#include "routing/attention/lsh.h"
#include "routing/attention/position_patterns.h"
#include "routing/attention/routing.h"
#include "routing/core/error.h"

#include <variant>

namespace routing {
namespace {

// Patterns that are a function of the layout alone.
template <class Config, Plan (*make_plan)(const TokenLayout&, const Config&, bool, SelfRule)>
class PositionPattern : public Pattern {
 public:
  PositionPattern(const Config& config, bool causal, SelfRule self) : config_(config), causal_(causal), self_(self) {}
  PatternPlan plan(const PlanRequest& request) override {
    return {.plan = make_plan(request.layout, config_, causal_, self_)};
  }

 private:
  Config config_;
  bool causal_;
  SelfRule self_;
};

Plan full_plan_of(const TokenLayout& layout, const FullPattern&, bool causal, SelfRule self) {
  return full_plan(layout, causal, self);
}

// Draws anew for every step of training and always the same in evaluation.
class RandomGroups : public Pattern {
 public:
  RandomGroups(const RandomPattern& config, bool causal, SelfRule self, const PatternContext& context)
      : config_(config), causal_(causal), self_(self), place_(context.place), first_head_(context.first_head) {}

  PatternPlan plan(const PlanRequest& request) override {
    const auto head = static_cast<std::uint64_t>(first_head_);
    const std::uint64_t key = request.training ? place_.key("random pattern training", {head, request.step})
                                               : place_.key("random pattern evaluation", {head});
    return {.plan = random_plan(request.layout, config_, causal_, self_, key)};
  }

 private:
  RandomPattern config_;
  bool causal_;
  SelfRule self_;
  LayerPlace place_;
  std::int64_t first_head_;
};

class LshGroups : public Pattern {
 public:
  LshGroups(const HeadGroupConfig& group, const LshPattern& config, const PatternContext& context) : config_(config) {
    rules_.causal = context.kind == AttentionKind::causal_self;
    rules_.self = group.self;
    if (context.kind != AttentionKind::cross) {
      rules_.lookback = config.window;
      rules_.lookahead = rules_.causal ? 0 : config.lookahead.value_or(config.window - 1);
    }
    const std::uint64_t key = context.place.key("lsh", {static_cast<std::uint64_t>(context.first_head)});
    rotations_ = register_buffer("rotations", lsh_rotations(config, group.heads, context.dim, key, context.options));
  }

  PatternPlan plan(const PlanRequest& request) override {
    require<InputError>(request.queries.defined(), "lsh: the plan depends on the queries, but none were given");
    const at::Tensor query_buckets = lsh_buckets(request.queries, rotations_);
    const at::Tensor key_buckets = request.keys.defined() ? lsh_buckets(request.keys, rotations_) : at::Tensor();
    return {.plan = lsh_plan(request.layout, config_, rules_, query_buckets, key_buckets)};
  }

 private:
  LshPattern config_;
  VisibilityRules rules_;
  at::Tensor rotations_;
};

}  // namespace

at::Tensor Pattern::auxiliary_loss(const at::Tensor& /*queries*/, const at::Tensor& /*keys*/,
                                   const PatternPlan& /*plan*/) const {
  return {};
}

std::shared_ptr<Pattern> make_pattern(const HeadGroupConfig& group, const PatternContext& context) {
  const bool causal = context.kind == AttentionKind::causal_self;
  validate_head_group("head group (" + pattern_name(group.pattern) + ")", group, context.kind);
  struct Maker {
    // NOLINTBEGIN(cppcoreguidelines-avoid-const-or-ref-data-members): lives inside this call only.
    const HeadGroupConfig& group;
    const PatternContext& context;
    // NOLINTEND(cppcoreguidelines-avoid-const-or-ref-data-members)
    bool causal;
    std::shared_ptr<Pattern> operator()(const FullPattern& config) const {
      return std::make_shared<PositionPattern<FullPattern, full_plan_of>>(config, causal, group.self);
    }
    std::shared_ptr<Pattern> operator()(const LocalPattern& config) const {
      return std::make_shared<PositionPattern<LocalPattern, local_plan>>(config, causal, group.self);
    }
    std::shared_ptr<Pattern> operator()(const StridedPattern& config) const {
      return std::make_shared<PositionPattern<StridedPattern, strided_plan>>(config, causal, group.self);
    }
    std::shared_ptr<Pattern> operator()(const RandomPattern& config) const {
      return std::make_shared<RandomGroups>(config, causal, group.self, context);
    }
    std::shared_ptr<Pattern> operator()(const LshPattern& config) const {
      return std::make_shared<LshGroups>(group, config, context);
    }
    std::shared_ptr<Pattern> operator()(const RoutingPattern& config) const {
      return std::make_shared<RoutingGroups>(group, config, context);
    }
  };
  return std::visit(Maker{group, context, causal}, group.pattern);
}

}  // namespace routing
