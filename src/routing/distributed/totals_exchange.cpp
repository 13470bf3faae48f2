#include "routing/distributed/totals_exchange.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace routing {
namespace {

constexpr std::int64_t kNobody = std::numeric_limits<std::int64_t>::max();

// Calls visit(number) for every count, then for every sum, of all totals in one order.
template <class Visit>
void visit_counts(std::vector<StepTotals>& totals, TotalsExchange::Extra& extra, const Visit& visit) {
  for (StepTotals& step : totals) {
    for (auto& side : step.totals) {
      for (ClusterTotals& head : side) {
        for (std::int64_t* number : {&head.tokens, &head.unrouted, &head.overlapping, &head.fallback}) {
          visit(*number);
        }
        for (auto* numbers : {&head.argmax, &head.nearest, &head.passing, &head.members, &head.moving}) {
          for (std::int64_t& number : *numbers) visit(number);
        }
      }
    }
  }
  for (std::int64_t& number : extra.counts) visit(number);
}

template <class Visit>
void visit_sums(std::vector<StepTotals>& totals, TotalsExchange::Extra& extra, const Visit& visit) {
  for (StepTotals& step : totals) {
    for (auto& side : step.totals) {
      for (ClusterTotals& head : side) {
        visit(head.squared_distance);
        for (auto* numbers : {&head.score_sum, &head.score_square_sum, &head.moving_sum}) {
          for (double& number : *numbers) visit(number);
        }
      }
    }
  }
  for (double& number : extra.sums) visit(number);
}

// Priorities are unsigned, tensors are not: the order stays if the highest bit turns.
std::int64_t as_signed(std::uint64_t priority) {
  return static_cast<std::int64_t>(priority ^ (std::uint64_t{1} << 63U));
}

// The samples of a group's heads are of the same tokens. Where each of `mine` stands among the lowest of all ranks: -1
// for those that are not among them.
struct MergedPlaces {
  std::vector<std::int64_t> chosen;  // priorities, ascending
  std::vector<std::int64_t> mine;
};

MergedPlaces merge_places(RankGroup& ranks, const std::vector<TokenSample::Entry>& entries, std::size_t capacity) {
  at::Tensor own = at::full({static_cast<std::int64_t>(capacity)}, kNobody, at::kLong);
  auto* priorities = own.data_ptr<std::int64_t>();
  for (std::size_t i = 0; i < entries.size(); ++i) priorities[i] = as_signed(entries[i].priority);
  const at::Tensor all = ranks.gather(own).flatten().contiguous();
  MergedPlaces places;
  places.chosen.assign(all.data_ptr<std::int64_t>(), all.data_ptr<std::int64_t>() + all.numel());
  std::sort(places.chosen.begin(), places.chosen.end());
  places.chosen.resize(capacity);
  while (!places.chosen.empty() && places.chosen.back() == kNobody) places.chosen.pop_back();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto found = std::lower_bound(places.chosen.begin(), places.chosen.end(), priorities[i]);
    const bool is_chosen = found != places.chosen.end() && *found == priorities[i];
    places.mine.push_back(is_chosen ? found - places.chosen.begin() : -1);
  }
  return places;
}

}  // namespace

TotalsExchange::TotalsExchange(RankGroup& ranks, std::vector<StepTotals> totals, Extra extra)
    : ranks_(ranks), totals_(std::move(totals)), extra_(std::move(extra)) {
  std::int64_t counts = 0;
  std::int64_t sums = 0;
  visit_counts(totals_, extra_, [&](std::int64_t& /*number*/) { ++counts; });
  visit_sums(totals_, extra_, [&](double& /*number*/) { ++sums; });
  counts_ = at::empty({counts}, at::kLong);
  sums_ = at::empty({sums}, at::kDouble);
  auto* count = counts_.data_ptr<std::int64_t>();
  visit_counts(totals_, extra_, [&](std::int64_t& number) { *count++ = number; });
  auto* sum = sums_.data_ptr<double>();
  visit_sums(totals_, extra_, [&](double& number) { *sum++ = number; });
  pending_ = ranks_.start_sum({counts_, sums_});
}

// Who has which tokens is gathered first; then only the vectors of those that stay travel, each into its own place of
// zeros. Their bits are added as whole numbers, so nothing is rounded.
void TotalsExchange::exchange_samples() {
  for (StepTotals& step : totals_) {
    if (step.sample.empty() || step.sample.front().capacity() == 0) continue;
    const std::size_t capacity = step.sample.front().capacity();
    const auto dim = static_cast<std::int64_t>(step.sample.front().dim());
    const auto heads = static_cast<std::int64_t>(step.sample.size());
    const MergedPlaces places = merge_places(ranks_, step.sample.front().entries(), capacity);
    const auto chosen = static_cast<std::int64_t>(places.chosen.size());
    const at::Tensor vectors = at::zeros({heads, chosen, dim}, at::kInt);
    for (std::int64_t head = 0; head < heads; ++head) {
      const auto entries = step.sample[static_cast<std::size_t>(head)].entries();
      require<InputError>(entries.size() == places.mine.size(), "head ", head, " sampled ", entries.size(),
                          " tokens, but head 0 ", places.mine.size());
      for (std::size_t i = 0; i < entries.size(); ++i) {
        if (places.mine[i] < 0) continue;
        std::memcpy(vectors.data_ptr<std::int32_t>() + (head * chosen + places.mine[i]) * dim, entries[i].vector.data(),
                    static_cast<std::size_t>(dim) * sizeof(float));
      }
    }
    ranks_.sum(vectors);
    for (std::int64_t head = 0; head < heads; ++head) {
      TokenSample merged(capacity, static_cast<std::size_t>(dim));
      std::vector<float> vector(static_cast<std::size_t>(dim));
      for (std::int64_t i = 0; i < chosen; ++i) {
        std::memcpy(vector.data(), vectors.data_ptr<std::int32_t>() + (head * chosen + i) * dim,
                    vector.size() * sizeof(float));
        merged.offer(static_cast<std::uint64_t>(places.chosen[static_cast<std::size_t>(i)]) ^ (std::uint64_t{1} << 63U),
                     vector);
      }
      step.sample[static_cast<std::size_t>(head)] = std::move(merged);
    }
  }
}

TotalsExchange::Result TotalsExchange::finish() {
  pending_->wait();
  const auto* count = counts_.data_ptr<std::int64_t>();
  visit_counts(totals_, extra_, [&](std::int64_t& number) { number = *count++; });
  const auto* sum = sums_.data_ptr<double>();
  visit_sums(totals_, extra_, [&](double& number) { number = *sum++; });
  if (ranks_.size() > 1) exchange_samples();
  return {std::move(totals_), std::move(extra_)};
}

void share_evaluated_totals(RankGroup& ranks, SequenceModel& model) {
  if (ranks.size() == 1) return;
  const std::vector<SequenceModel::RoutedGroup> groups = model.routed_groups();
  if (groups.empty()) return;
  // How many sides a group has is known only to those who have seen tokens.
  const at::Tensor sides = at::zeros({static_cast<std::int64_t>(groups.size())}, at::kLong);
  std::vector<StepTotals> totals;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    StepTotals& own = totals.emplace_back(groups[i].centroids->evaluated());
    own.sample.clear();
    sides.data_ptr<std::int64_t>()[i] = own.empty() ? 0 : own.totals[1].empty() ? 1 : 2;
  }
  const at::Tensor most = std::get<0>(ranks.gather(sides).max(0)).contiguous();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const at::Tensor& centroids = groups[i].centroids->centroids();
    for (std::int64_t side = 0; side < most.data_ptr<std::int64_t>()[i]; ++side) {
      totals[i].totals[static_cast<std::size_t>(side)].resize(static_cast<std::size_t>(centroids.size(0)),
                                                              ClusterTotals(centroids.size(1), centroids.size(2)));
    }
  }
  TotalsExchange::Result result = TotalsExchange(ranks, std::move(totals), {}).finish();
  for (std::size_t i = 0; i < groups.size(); ++i) groups[i].centroids->set_evaluated(std::move(result.totals[i]));
}

}  // namespace routing
