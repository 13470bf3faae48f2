#include "support/pattern_cases.h"

#include "routing/attention/patterns/position_patterns.h"
#include "routing/ops/random_fill.h"

namespace routing::support {
namespace {

struct NamedPattern {
  std::string name;
  PatternConfig pattern;
};

std::vector<NamedPattern> patterns_of(AttentionKind kind) {
  const LocalPattern block{.form = LocalForm::block, .window = 8};
  const RandomPattern random{.groups = 4, .window = 9};
  const LshPattern lsh{.buckets = 4, .rounds = 1, .window = 7};
  // Keys that several rounds find: few, and half of all of them in windows of more than one tile.
  const LshPattern lsh_rounds{.buckets = 4, .rounds = 4, .window = 7};
  const LshPattern lsh_wide{.buckets = 2, .rounds = 2, .window = 90};
  std::vector<NamedPattern> patterns{{"full", FullPattern{}},    {"block", block},
                                     {"random", random},         {"lsh", lsh},
                                     {"lsh_rounds", lsh_rounds}, {"lsh_wide", lsh_wide}};
  for (const RoutingSelection selection :
       {RoutingSelection::balanced, RoutingSelection::nearest, RoutingSelection::threshold}) {
    patterns.push_back({"routing_" + std::string(to_string(selection)),
                        RoutingPattern{.selection = selection, .clusters = 5, .window = 7, .max_memberships = 3}});
  }
  if (kind == AttentionKind::cross) {
    patterns.push_back({"block_wide", LocalPattern{.form = LocalForm::block, .window = 5, .flange = 2}});
    return patterns;
  }
  patterns.push_back({"strided", StridedPattern{.stride = 5}});
  patterns.push_back({"sliding", LocalPattern{.form = LocalForm::sliding, .window = 6}});
  patterns.push_back({"fixed", FixedPattern{.stride = 7, .summary = 3}});
  patterns.push_back({"local2d", Local2dPattern{.rows = 2, .columns = 3, .above = 1, .beside = 2, .image_width = 7}});
  patterns.push_back({"block_own", LocalPattern{.form = LocalForm::block, .window = 9, .flange = 0}});
  patterns.push_back({"span", SpanPattern{.limit = 12, .ramp = 4, .initial = 0.2}});
  if (kind == AttentionKind::bidirectional_self) {
    patterns.push_back({"sliding_ahead", LocalPattern{.form = LocalForm::sliding, .window = 6, .lookahead = 2}});
    patterns.push_back({"routing_ahead", RoutingPattern{.clusters = 4, .window = 5, .lookahead = 1}});
    patterns.push_back({"lsh_ahead", LshPattern{.buckets = 4, .rounds = 2, .window = 5, .lookahead = 1}});
  }
  return patterns;
}

const char* kind_name(AttentionKind kind) {
  switch (kind) {
    case AttentionKind::causal_self:
      return "causal";
    case AttentionKind::bidirectional_self:
      return "bidirectional";
    case AttentionKind::cross:
      return "cross";
  }
  return "";
}

std::vector<PatternCase> make_cases() {
  std::vector<PatternCase> cases;
  for (const AttentionKind kind :
       {AttentionKind::causal_self, AttentionKind::bidirectional_self, AttentionKind::cross}) {
    for (const NamedPattern& named : patterns_of(kind)) {
      const std::string name = named.name + "_" + kind_name(kind);
      cases.push_back({name, kind, {.pattern = named.pattern}});
      // Heads with a span read the token itself, as it stands.
      if (kind == AttentionKind::cross || std::holds_alternative<SpanPattern>(named.pattern)) continue;
      cases.push_back({name + "_alone", kind, {.pattern = named.pattern, .self = SelfRule::only_if_alone}});
      // Differs where a token is in several groups.
      const bool overlaps =
          std::holds_alternative<RoutingPattern>(named.pattern) || std::holds_alternative<RandomPattern>(named.pattern);
      if (overlaps) {
        cases.push_back(
            {name + "_alone_in_group", kind, {.pattern = named.pattern, .self = SelfRule::only_if_alone_in_group}});
      }
      if (std::holds_alternative<LshPattern>(named.pattern) || std::holds_alternative<RoutingPattern>(named.pattern)) {
        cases.push_back({name + "_shared_alone",
                         kind,
                         {.pattern = named.pattern, .shared_query_key = true, .self = SelfRule::only_if_alone}});
      }
      if (kind == AttentionKind::causal_self) {
        cases.push_back(
            {name + "_shifted", kind, {.pattern = named.pattern, .shared_query_key = true, .key_shift = 1}});
      }
    }
  }
  for (PatternCase& pattern_case : cases) pattern_case.group.heads = 2;
  return cases;
}

}  // namespace

const std::vector<PatternCase>& every_pattern_case() {
  static const std::vector<PatternCase> cases = make_cases();
  return cases;
}

std::vector<PatternCase> pattern_cases(AttentionKind kind) {
  std::vector<PatternCase> cases;
  for (const PatternCase& pattern_case : every_pattern_case()) {
    if (pattern_case.kind == kind) cases.push_back(pattern_case);
  }
  return cases;
}

at::Tensor random_tensor(at::IntArrayRef sizes, std::uint64_t seed, at::ScalarType type) {
  at::Tensor tensor = at::empty(sizes, type);
  fill_normal(tensor, 0.0, 1.0, RandomStream(seed, "test tensor"));
  return tensor;
}

at::Tensor ragged_mask(std::int64_t batch, std::int64_t tokens, std::uint64_t seed) {
  at::Tensor mask = at::ones({batch, tokens}, at::kBool);
  RandomStream stream(seed, "ragged mask");
  for (std::int64_t sequence = 1; sequence < batch; ++sequence) {
    const std::int64_t length = 1 + stream.below(static_cast<std::uint32_t>(tokens));
    mask[sequence].narrow(0, length, tokens - length).fill_(false);
    if (sequence >= 2 && sequence == batch - 1) {
      mask[sequence].narrow(0, 0, stream.below(static_cast<std::uint32_t>(length))).fill_(false);
    }
  }
  return mask;
}

Plan plan_for(const PatternCase& pattern_case, const CaseInputs& inputs, const CaseSizes& sizes) {
  const auto pattern = make_pattern(pattern_case.group, {.kind = pattern_case.kind,
                                                         .dim = sizes.dim,
                                                         .place = {.seed = 7, .layer = 3},
                                                         .options = at::TensorOptions(at::kDouble)});
  return pattern->plan({.layout = inputs.layout,
                        .queries = inputs.q,
                        .keys = pattern_case.group.shared_query_key ? at::Tensor() : inputs.k,
                        .training = sizes.training});
}

CaseInputs make_inputs(const PatternCase& pattern_case, const CaseSizes& sizes) {
  const std::int64_t heads = pattern_case.group.heads;
  const bool cross = pattern_case.kind == AttentionKind::cross;
  const std::int64_t keys = cross ? 2 * sizes.tokens / 3 + 1 : sizes.tokens;
  CaseInputs inputs{.q = random_tensor({sizes.batch, heads, sizes.tokens, sizes.dim}, sizes.seed),
                    .k = random_tensor({sizes.batch, heads, keys, sizes.dim}, sizes.seed + 1000),
                    .v = random_tensor({sizes.batch, heads, keys, sizes.dim + 1}, sizes.seed + 2000),
                    .valid = {},
                    .key_valid = {},
                    .layout = {},
                    .plan = full_plan({}, true, SelfRule::allowed)};
  if (pattern_case.group.shared_query_key) inputs.k = inputs.q;
  if (sizes.ragged) {
    inputs.valid = ragged_mask(sizes.batch, sizes.tokens, sizes.seed);
    inputs.key_valid = cross ? ragged_mask(sizes.batch, keys, sizes.seed + 1) : inputs.valid;
  }
  inputs.layout =
      cross ? cross_layout({.batch = sizes.batch, .heads = heads, .num_queries = sizes.tokens, .num_keys = keys},
                           inputs.valid, inputs.key_valid)
            : self_layout(sizes.batch, heads, sizes.tokens, inputs.valid);
  inputs.plan = plan_for(pattern_case, inputs, sizes);
  return inputs;
}

}  // namespace routing::support
