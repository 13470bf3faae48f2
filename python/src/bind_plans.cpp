// Plans, and the patterns as functions that make them.
#include "bindings.h"
#include "routing/attention/patterns/pattern.h"
#include "routing/attention/patterns/routing.h"
#include "routing/config/attention.h"
#include "routing/core/error.h"

#include <utility>

namespace routing::python {
namespace {

template <class Enum>
std::string word_of(Enum value) {
  return std::string(to_string(value));
}

struct PlanSizes {
  std::int64_t batch, heads, num_queries, num_keys;
};

struct PlanLists {
  at::Tensor query_order, key_order, groups, unit_offsets;
};

Plan plan_of_lists(const PlanSizes& sizes, const PlanLists& lists, const VisibilityRules& rules) {
  // Whole numbers of any type, with any strides; of a plan's own types they are taken as they are.
  const auto whole = [](const char* name, const at::Tensor& list, at::ScalarType type) {
    require<InputError>(at::isIntegralType(list.scalar_type(), false), "plan: ", name, " holds ", list.scalar_type(),
                        ", but must hold whole numbers");
    const at::Tensor taken = list.to(type).contiguous();
    require<InputError>(taken.to(list.scalar_type()).equal(list), "plan: ", name,
                        " holds a number beyond 2^31 - 1; positions are below that");
    return taken;
  };
  const at::Tensor query_order = whole("query_order", lists.query_order, at::kInt);
  const bool shared = lists.key_order.is_same(lists.query_order);
  return complete_plan({.batch = sizes.batch,
                        .heads = sizes.heads,
                        .num_queries = sizes.num_queries,
                        .num_keys = sizes.num_keys,
                        .query_order = query_order,
                        .key_order = shared ? query_order : whole("key_order", lists.key_order, at::kInt),
                        .groups = whole("groups", lists.groups, at::kLong),
                        .unit_offsets = whole("unit_offsets", lists.unit_offsets, at::kLong),
                        .rules = rules});
}

using MaybeCount = std::optional<std::int64_t>;

// What a pickle holds; the index is made again.
py::tuple state_of(const Plan& plan) {
  return py::make_tuple(plan.batch, plan.heads, plan.num_queries, plan.num_keys, plan.query_order, plan.key_order,
                        plan.groups, plan.unit_offsets, plan.rules.causal, plan.rules.lookback, plan.rules.lookahead,
                        word_of(plan.rules.self), word_of(plan.rules.repeats));
}

Plan plan_of_state(const py::tuple& state) {
  const auto number = [&](std::size_t i) { return state[i].cast<std::int64_t>(); };
  const auto tensor = [&](std::size_t i) { return state[i].cast<at::Tensor>(); };
  return plan_of_lists({number(0), number(1), number(2), number(3)}, {tensor(4), tensor(5), tensor(6), tensor(7)},
                       {.lookback = state[9].cast<MaybeCount>(),
                        .lookahead = state[10].cast<MaybeCount>(),
                        .causal = state[8].cast<bool>(),
                        .self = parse_word<SelfRule>(state[11].cast<std::string>(), "self"),
                        .repeats = parse_word<RepeatRule>(state[12].cast<std::string>(), "repeats")});
}

std::string text_of(const Plan& plan) {
  return "Plan(batch=" + std::to_string(plan.batch) + ", heads=" + std::to_string(plan.heads) +
         ", queries=" + std::to_string(plan.num_queries) + ", keys=" + std::to_string(plan.num_keys) +
         ", groups=" + std::to_string(plan.num_groups()) + (plan.rules.causal ? ", causal)" : ")");
}

// The fields of a pattern by name. What is left over at the end has no such field.
class Fields {
 public:
  Fields(std::string pattern, py::dict given) : pattern_(std::move(pattern)), left_(std::move(given)) {}

  template <class Value>
  void take(const char* name, Value& value) {
    if (!left_.contains(name)) return;
    const py::object given = left_.attr("pop")(name);
    if constexpr (HasWords<Value>) {
      value = parse_word<Value>(given.cast<std::string>(), name);
    } else {
      value = given.cast<Value>();
    }
  }
  void finish() const {
    if (left_.empty()) return;
    throw ConfigError(pattern_ + ": has no '" + left_.begin()->first.cast<std::string>() + "'");
  }

 private:
  std::string pattern_;
  py::dict left_;
};

// Takes what the pattern has of these names.
struct TakeFields {
  Fields& fields;  // NOLINT(cppcoreguidelines-avoid-const-or-ref-data-members): lives for one call

  template <class Pattern>
  void operator()(Pattern& pattern) const {
#define ROUTING_TAKE(name) \
  if constexpr (requires { pattern.name; }) fields.take(#name, pattern.name)
    ROUTING_TAKE(form);
    ROUTING_TAKE(window);
    ROUTING_TAKE(lookahead);
    ROUTING_TAKE(flange);
    ROUTING_TAKE(stride);
    ROUTING_TAKE(summary);
    ROUTING_TAKE(rows);
    ROUTING_TAKE(columns);
    ROUTING_TAKE(above);
    ROUTING_TAKE(beside);
    ROUTING_TAKE(image_width);
    ROUTING_TAKE(groups);
    ROUTING_TAKE(buckets);
    ROUTING_TAKE(rounds);
    ROUTING_TAKE(selection);
    ROUTING_TAKE(clusters);
    ROUTING_TAKE(max_memberships);
    ROUTING_TAKE(balanced_source);
#undef ROUTING_TAKE
  }
};

PatternConfig pattern_of(const std::string& name, const py::dict& given) {
  const auto kind = parse_word<PatternKind>(name, "pattern");
  require<ConfigError>(kind != PatternKind::span, "pattern: span has a learned weight and is part of RoutingAttention ",
                       "only (content='span')");
  PatternConfig made;
  for (const PatternConfig& pattern :
       std::initializer_list<PatternConfig>{FullPattern{}, LocalPattern{}, StridedPattern{}, FixedPattern{},
                                            Local2dPattern{}, RandomPattern{}, LshPattern{}, RoutingPattern{}}) {
    if (pattern_kind(pattern) == kind) made = pattern;
  }
  Fields fields(name, given.attr("copy")());
  std::visit(TakeFields{fields}, made);
  fields.finish();
  return made;
}

struct PlanQuestion {
  std::string pattern;
  py::dict fields;
  PlanSizes sizes;
  std::string kind;  // causal, bidirectional or cross
  std::optional<at::Tensor> query_padding, key_padding;
};

AttentionKind kind_of(const std::string& word) {
  if (word == "causal") return AttentionKind::causal_self;
  if (word == "bidirectional") return AttentionKind::bidirectional_self;
  require<ConfigError>(word == "cross", "kind is '", word, "', but it must be causal, bidirectional or cross");
  return AttentionKind::cross;
}

// PyTorch marks padding, the library marks what is real.
at::Tensor valid_of(const std::optional<at::Tensor>& padding) {
  return padding ? padding->logical_not() : at::Tensor();
}

struct PlanContent {
  std::optional<at::Tensor> queries, keys, centroids, thresholds;
  std::string self = "allowed";
  std::uint64_t seed = 1;
  std::uint64_t step = 0;
};

Plan make_plan(const PlanQuestion& question, const PlanContent& content) {
  const AttentionKind kind = kind_of(question.kind);
  HeadGroupConfig group{.pattern = pattern_of(question.pattern, question.fields),
                        .heads = question.sizes.heads,
                        .shared_query_key = content.queries.has_value() && !content.keys,
                        .self = parse_word<SelfRule>(content.self, "self")};
  validate_head_group(question.pattern, group, kind);
  const std::int64_t dim = content.queries ? content.queries->size(-1) : 1;
  const std::shared_ptr<Pattern> pattern =
      make_pattern(group, {.kind = kind, .dim = dim, .place = {.seed = content.seed}, .options = at::kFloat});
  if (content.centroids) {
    pattern->centroids()->set_centroids(*content.centroids);
    if (content.thresholds) {
      const at::Tensor& tau = pattern->centroids()->tau();
      require<InputError>(content.thresholds->sizes() == tau.sizes(), "thresholds are ", content.thresholds->sizes(),
                          ", but must be ", tau.sizes());
      tau.copy_(*content.thresholds);
    }
  }
  const PlanSizes& sizes = question.sizes;
  const TokenLayout layout =
      kind == AttentionKind::cross
          ? cross_layout({sizes.batch, sizes.heads, sizes.num_queries, sizes.num_keys},
                         valid_of(question.query_padding), valid_of(question.key_padding))
          : self_layout(sizes.batch, sizes.heads, sizes.num_queries, valid_of(question.query_padding));
  const py::gil_scoped_release others_may_run;
  return pattern->plan({.layout = layout,
                        .queries = content.queries ? content.queries->detach() : at::Tensor(),
                        .keys = content.keys ? content.keys->detach() : at::Tensor(),
                        .step = content.step});
}

}  // namespace

void bind_plans(py::module_& module) {
  py::class_<Plan>(module, "Plan",
                   "Which keys every query may read: groups of queries and keys as tensors (docs/python.md).\n\n"
                   "Made by routing_transformer.plans, or of lists of one's own, which are checked:\n\n"
                   "query_order, key_order  positions, group after group, in each group ascending\n"
                   "groups [groups, 4]      first and end in query_order, first and end in key_order\n"
                   "unit_offsets            [batch * heads + 1]: the first group of every head of every sequence, and\n"
                   "                        behind the last the number of groups")
      .def(py::init([](std::int64_t batch, std::int64_t heads, std::int64_t num_queries, std::int64_t num_keys,
                       const at::Tensor& query_order, const at::Tensor& key_order, const at::Tensor& groups,
                       const at::Tensor& unit_offsets, bool causal, MaybeCount lookback, MaybeCount lookahead,
                       const std::string& self, const std::string& repeats) {
             return plan_of_lists({batch, heads, num_queries, num_keys}, {query_order, key_order, groups, unit_offsets},
                                  {.lookback = lookback,
                                   .lookahead = lookahead,
                                   .causal = causal,
                                   .self = parse_word<SelfRule>(self, "self"),
                                   .repeats = parse_word<RepeatRule>(repeats, "repeats")});
           }),
           py::kw_only(), py::arg("batch"), py::arg("heads"), py::arg("num_queries"), py::arg("num_keys"),
           py::arg("query_order"), py::arg("key_order"), py::arg("groups"), py::arg("unit_offsets"),
           py::arg("causal") = true, py::arg("lookback") = py::none(), py::arg("lookahead") = py::none(),
           py::arg("self_rule") = "allowed", py::arg("repeats") = "every_time")
      .def_readonly("batch", &Plan::batch)
      .def_readonly("heads", &Plan::heads)
      .def_readonly("num_queries", &Plan::num_queries)
      .def_readonly("num_keys", &Plan::num_keys)
      .def_property_readonly("num_groups", &Plan::num_groups)
      .def_readonly("query_order", &Plan::query_order)
      .def_readonly("key_order", &Plan::key_order)
      .def_readonly("groups", &Plan::groups)
      .def_readonly("unit_offsets", &Plan::unit_offsets)
      .def_property_readonly("causal", [](const Plan& plan) { return plan.rules.causal; })
      .def_property_readonly("lookback", [](const Plan& plan) { return plan.rules.lookback; })
      .def_property_readonly("lookahead", [](const Plan& plan) { return plan.rules.lookahead; })
      .def_property_readonly("self_rule", [](const Plan& plan) { return word_of(plan.rules.self); })
      .def_property_readonly("repeats", [](const Plan& plan) { return word_of(plan.rules.repeats); })
      .def_property_readonly("query_choice", [](const Plan& plan) { return none_or_tensor(plan.query_choice); })
      .def_property_readonly("key_choice", [](const Plan& plan) { return none_or_tensor(plan.key_choice); })
      .def("dense_counts", &Plan::to_dense_counts)
      .def(
          "__eq__", [](const Plan& plan, const Plan& other) { return plan == other; }, py::is_operator())
      .def("__repr__", &text_of)
      .def(py::pickle(&state_of, &plan_of_state));

  module.def(
      "make_plan",
      [](const std::string& pattern, const py::dict& fields, const std::vector<std::int64_t>& sizes,
         const std::string& kind, const std::optional<at::Tensor>& query_padding,
         const std::optional<at::Tensor>& key_padding, const std::optional<at::Tensor>& queries,
         const std::optional<at::Tensor>& keys, const std::optional<at::Tensor>& centroids,
         const std::optional<at::Tensor>& thresholds, const std::string& self, std::uint64_t seed, std::uint64_t step) {
        return make_plan(
            {pattern, fields, {sizes.at(0), sizes.at(1), sizes.at(2), sizes.at(3)}, kind, query_padding, key_padding},
            {queries, keys, centroids, thresholds, self, seed, step});
      },
      py::arg("pattern"), py::arg("fields"), py::arg("sizes"), py::arg("kind"), py::arg("query_padding") = py::none(),
      py::arg("key_padding") = py::none(), py::arg("queries") = py::none(), py::arg("keys") = py::none(),
      py::arg("centroids") = py::none(), py::arg("thresholds") = py::none(), py::arg("self_rule") = "allowed",
      py::arg("seed") = 1, py::arg("step") = 0);
}

}  // namespace routing::python
