#include "routing/attention/patterns/routing.h"

#include "routing/attention/plan/plan_builder.h"
#include "routing/core/error.h"
#include "routing/core/parallel.h"
#include "routing/ops/commitment.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace routing {
namespace {

// All units of one side: what they chose, and the samples their heads need.
struct SideSelection {
  std::vector<UnitSelection> units;  // [batch * heads]
  at::Tensor choice;                 // int32 [batch, heads, tokens]
};

at::Tensor cpu_floats(const at::Tensor& vectors) {
  // Nothing to do, as mostly; asking torch to do nothing takes its time for a single token.
  const bool ready = vectors.device().is_cpu() && vectors.scalar_type() == at::kFloat && vectors.is_contiguous();
  return ready && !vectors.requires_grad() ? vectors : vectors.detach().to(at::kCPU, at::kFloat).contiguous();
}

std::span<const float> unit_vectors(const at::Tensor& vectors, std::int64_t unit) {
  const std::int64_t size = vectors.size(2) * vectors.size(3);
  return {vectors.data_ptr<float>() + unit * size, static_cast<std::size_t>(size)};
}

using ValidPositions = std::vector<std::vector<std::int32_t>>;

// Which tokens choose, and which of them only join what they have chosen: remembered ones stand in the lists of
// members, and in nothing that is learned from.
struct Choosers {
  const ValidPositions* tokens = nullptr;
  const ValidPositions* remembered = nullptr;  // null where there are none
};

SideSelection select_side(const at::Tensor& vectors, const Choosers& who, const HostCentroids& centroids,
                          const RoutingPattern& config) {
  const std::int64_t heads = vectors.size(1);
  const std::int64_t tokens = vectors.size(2);
  SideSelection side;
  side.units.resize(static_cast<std::size_t>(vectors.size(0) * heads));
  side.choice = at::empty({vectors.size(0), heads, tokens}, at::kInt);
  parallel_for(0, vectors.size(0) * heads, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t unit = first; unit < last; ++unit) {
      UnitSelection& selection = side.units[static_cast<std::size_t>(unit)];
      const auto sequence = static_cast<std::size_t>(unit / heads);
      const auto members = [&](const ValidPositions& valid) {
        return select_members(unit_vectors(vectors, unit), valid[sequence], centroids.view(unit % heads), config);
      };
      selection = members(*who.tokens);
      if (who.remembered != nullptr) {
        // Tokens choose by themselves, and remembered ones come first.
        UnitSelection before = members(*who.remembered);
        for (std::size_t c = 0; c < before.members.size(); ++c) {
          const auto& later = selection.members[c];
          before.members[c].insert(before.members[c].end(), later.begin(), later.end());
        }
        selection.members = std::move(before.members);
      }
      std::copy(selection.committed.begin(), selection.committed.end(),
                side.choice.data_ptr<std::int32_t>() + unit * tokens);
    }
  });
  return side;
}

// Sums of one side over the sequences of the batch, head by head, in the order of the batch.
std::vector<ClusterTotals> totals_of(const SideSelection& side, std::int64_t heads) {
  std::vector<ClusterTotals> totals(static_cast<std::size_t>(heads));
  for (std::size_t unit = 0; unit < side.units.size(); ++unit) {
    totals[unit % static_cast<std::size_t>(heads)].add(side.units[unit].totals);
  }
  return totals;
}

// Of one token of each sequence: those of a head together.
std::vector<TokenLists> lists_of_steps(const at::Tensor& vectors, const HostCentroids& centroids,
                                       const RoutingPattern& config) {
  const auto sequences = static_cast<std::size_t>(vectors.size(0));
  const auto heads = static_cast<std::size_t>(vectors.size(1));
  const std::span all(vectors.data_ptr<float>(), static_cast<std::size_t>(vectors.numel()));
  std::vector<TokenLists> lists(sequences * heads);
  std::vector<std::int32_t> rows(sequences);
  for (std::size_t head = 0; head < heads; ++head) {
    for (std::size_t sequence = 0; sequence < sequences; ++sequence) {
      rows[sequence] = static_cast<std::int32_t>(sequence * heads + head);
    }
    const TokenLists chosen = clusters_of_rows(all, rows, centroids.view(static_cast<std::int64_t>(head)), config);
    auto next = chosen.lists.begin();
    for (std::size_t sequence = 0; sequence < sequences; ++sequence) {
      TokenLists& own = lists[sequence * heads + head];
      const std::int32_t count = chosen.counts[sequence];
      own.counts = {count};
      own.lists.assign(next, next + count);
      next += count;
    }
  }
  return lists;
}

struct SampledSide {
  at::Tensor vectors;
  const ValidPositions* valid;
};

struct SampledToken {
  std::uint64_t priority;
  std::size_t side;
  std::int64_t sequence;
  std::int32_t position;
};

// The tokens that can be in a sample of so many. Priorities name the sequence, the side and the position, not the head:
// all heads sample the same tokens.
std::vector<SampledToken> tokens_to_sample(const std::vector<SampledSide>& sides, const PlanRequest& request,
                                           std::uint64_t key, std::size_t capacity) {
  const at::Tensor& sample_ids = request.sample_ids;
  std::vector<SampledToken> tokens;
  for (std::size_t side = 0; side < sides.size(); ++side) {
    for (std::int64_t b = 0; b < sides[side].vectors.size(0); ++b) {
      const std::int64_t id = sample_ids.defined() ? sample_ids[b].item<std::int64_t>() : b;
      const StreamKeys priority_of(key, "", {static_cast<std::uint64_t>(id), side});
      for (const std::int32_t position : (*sides[side].valid)[static_cast<std::size_t>(b)]) {
        tokens.push_back(
            {priority_of(static_cast<std::uint64_t>(request.first_position + position)), side, b, position});
      }
    }
  }
  if (tokens.size() > capacity) {
    std::nth_element(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(capacity), tokens.end(),
                     [](const SampledToken& a, const SampledToken& c) { return a.priority < c.priority; });
    tokens.resize(capacity);
  }
  return tokens;
}

std::vector<TokenSample> sample_tokens(const std::vector<SampledSide>& sides, const PlanRequest& request,
                                       const Centroids& centroids) {
  const std::int64_t heads = sides[0].vectors.size(1);
  const auto dim = static_cast<std::size_t>(sides[0].vectors.size(3));
  const std::size_t capacity = centroids.sample_size();
  std::vector<TokenSample> samples(static_cast<std::size_t>(heads), TokenSample(capacity, dim));
  if (capacity == 0) return samples;
  const std::vector<SampledToken> tokens = tokens_to_sample(sides, request, centroids.sample_key(), capacity);
  parallel_for(0, heads, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t head = first; head < last; ++head) {
      for (const SampledToken& token : tokens) {
        const auto vectors = unit_vectors(sides[token.side].vectors, token.sequence * heads + head);
        samples[static_cast<std::size_t>(head)].offer(
            token.priority, vectors.subspan(static_cast<std::size_t>(token.position) * dim, dim));
      }
    }
  });
  return samples;
}

void check_vectors(const char* name, const at::Tensor& vectors, const std::vector<std::int64_t>& expected) {
  require<InputError>(vectors.defined(), "routing: the plan depends on the ", name, ", but none were given");
  require<InputError>(vectors.sizes() == at::IntArrayRef(expected), "routing: ", name, " are ", vectors.sizes(),
                      ", but must be ", at::IntArrayRef(expected));
}

// The positions of a layout, cut after those that are remembered.
struct CutPositions {
  ValidPositions remembered, later;
};
CutPositions cut(const ValidPositions& valid, std::int64_t remembered) {
  CutPositions parts;
  for (const std::vector<std::int32_t>& positions : valid) {
    const auto middle = std::lower_bound(positions.begin(), positions.end(), remembered);
    parts.remembered.emplace_back(positions.begin(), middle);
    parts.later.emplace_back(middle, positions.end());
  }
  return parts;
}

}  // namespace

RoutingGroups::RoutingGroups(const HeadGroupConfig& group, const RoutingPattern& config, const PatternContext& context)
    : config_(config), key_config_(config), kind_(context.kind) {
  rules_.causal = context.kind == AttentionKind::causal_self;
  rules_.self = group.self;
  if (context.kind != AttentionKind::cross && config.selection != RoutingSelection::balanced) {
    rules_.lookback = config.window;
    rules_.lookahead = rules_.causal ? 0 : config.lookahead.value_or(config.window - 1);
  }
  if (context.kind == AttentionKind::cross && config.balanced_source)
    key_config_.selection = RoutingSelection::balanced;
  const std::uint64_t key = context.place.key("routing", {static_cast<std::uint64_t>(context.first_head)});
  centroids_ =
      register_module("centroids", std::make_shared<Centroids>(config, group.heads, context.dim, key, context.options));
}

Plan RoutingGroups::make_plan(const PlanRequest& request) {
  const TokenLayout& layout = request.layout;
  const bool separate = request.keys.defined();
  const std::int64_t dim = centroids_->centroids().size(2);
  check_vectors("queries", request.queries, {layout.batch, layout.heads, layout.num_queries, dim});
  if (separate) check_vectors("keys", request.keys, {layout.batch, layout.heads, layout.num_keys, dim});
  const at::Tensor queries = cpu_floats(request.queries);
  const at::Tensor keys = separate ? cpu_floats(request.keys) : at::Tensor();
  const HostCentroids host = centroids_->host();
  const bool remembers = request.remembered > 0;
  require<InputError>(!remembers || config_.selection != RoutingSelection::balanced,
                      "routing: selection = balanced lets tokens compete, so that ", request.remembered,
                      " remembered ones would take part; use threshold or nearest");
  // Of self-attention: both sides have the same tokens.
  const CutPositions parts = remembers ? cut(layout.valid_queries, request.remembered) : CutPositions();
  const Choosers of_queries{remembers ? &parts.later : &layout.valid_queries, remembers ? &parts.remembered : nullptr};
  const Choosers of_keys{remembers ? &parts.later : &layout.valid_keys, of_queries.remembered};
  const SideSelection query_side = select_side(queries, of_queries, host, config_);
  SideSelection key_side;
  if (separate) key_side = select_side(keys, of_keys, host, key_config_);

  StepTotals step;
  step.totals[0] = totals_of(query_side, layout.heads);
  if (separate) step.totals[1] = totals_of(key_side, layout.heads);
  if (request.training) {
    std::vector<SampledSide> sides{{queries, of_queries.tokens}};
    if (separate) sides.push_back({keys, of_keys.tokens});
    step.sample = sample_tokens(sides, request, *centroids_);
  }
  centroids_->collect(step, request.training);

  PlanBuilder builder(layout, rules_, separate ? PlanBuilder::Lists::two : PlanBuilder::Lists::one);
  for (std::size_t unit = 0; unit < query_side.units.size(); ++unit) {
    for (std::size_t c = 0; c < query_side.units[unit].members.size(); ++c) {
      const ListRange members = builder.add_queries(query_side.units[unit].members[c]);
      builder.add_group(members, separate ? builder.add_keys(key_side.units[unit].members[c]) : members);
    }
    builder.end_unit();
  }
  Plan plan = builder.build();
  plan.query_choice = query_side.choice;
  plan.key_choice = key_side.choice;
  return plan;
}

std::optional<ListRules> RoutingGroups::list_rules() const {
  if (kind_ == AttentionKind::bidirectional_self || config_.selection == RoutingSelection::balanced) {
    return std::nullopt;
  }
  return ListRules{.lists = config_.clusters, .lookback = rules_.lookback};
}

std::vector<TokenLists> RoutingGroups::token_lists(const at::Tensor& vectors,
                                                   std::span<const std::int64_t> /*first_positions*/) const {
  const at::Tensor rows = cpu_floats(vectors);
  const HostCentroids host = centroids_->host();
  const std::int64_t heads = rows.size(1);
  if (rows.size(2) == 1 && rows.size(0) > 1) return lists_of_steps(rows, host, config_);
  std::vector<TokenLists> all(static_cast<std::size_t>(rows.size(0) * heads));
  parallel_for(0, rows.size(0) * heads, 4, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t unit = first; unit < last; ++unit) {
      all[static_cast<std::size_t>(unit)] =
          clusters_of_tokens(unit_vectors(rows, unit), host.view(unit % heads), config_);
    }
  });
  return all;
}

std::vector<TokenLists> RoutingGroups::memory_lists(const at::Tensor& keys, std::span<const std::int32_t> valid) const {
  const ValidPositions positions{std::vector<std::int32_t>(valid.begin(), valid.end())};
  const at::Tensor rows = cpu_floats(keys);
  const SideSelection side = select_side(rows, {.tokens = &positions}, centroids_->host(), key_config_);
  std::vector<TokenLists> all;
  for (const UnitSelection& unit : side.units) {
    // Each cluster's members ascend; taken cluster after cluster, so do the clusters of a token.
    std::vector<std::vector<std::int32_t>> clusters(static_cast<std::size_t>(rows.size(2)));
    for (std::size_t c = 0; c < unit.members.size(); ++c) {
      for (const std::int32_t position : unit.members[c]) {
        clusters[static_cast<std::size_t>(position)].push_back(static_cast<std::int32_t>(c));
      }
    }
    TokenLists lists;
    for (const auto& of_token : clusters) {
      lists.counts.push_back(static_cast<std::int32_t>(of_token.size()));
      lists.lists.insert(lists.lists.end(), of_token.begin(), of_token.end());
    }
    all.push_back(std::move(lists));
  }
  return all;
}

at::Tensor RoutingGroups::auxiliary_loss(const at::Tensor& queries, const at::Tensor& keys, const Plan& plan) const {
  if (config_.commitment == 0.0) return {};
  at::Tensor loss = commitment_loss(queries, plan.query_choice, centroids_->centroids());
  if (keys.defined()) {
    loss = loss + commitment_loss(keys, plan.key_choice, centroids_->centroids());
  } else if (config_.commitment_twice_if_shared) {
    loss = loss * 2.0;
  }
  return loss * config_.commitment;
}

const char* validity_label(const RoutingPattern& pattern, AttentionKind kind) {
  // In an encoder there is no future. In cross-attention the queries are a decoder's and compete with later ones.
  const bool reads_future =
      pattern.selection == RoutingSelection::balanced && kind != AttentionKind::bidirectional_self;
  return reads_future ? "selection reads the future" : "causal";
}

}  // namespace routing
