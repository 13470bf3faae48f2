#include "routing/distributed/gradient_reducer.h"

#include "routing/distributed/group/c10d_handles.h"
#include "routing/distributed/watch/step_trace.h"

#include <torch/csrc/distributed/c10d/reducer.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <thread>
#include <unordered_map>
#include <utility>

namespace routing {
namespace {

using Clock = std::chrono::steady_clock;

// The first bucket is small, so that something travels soon; the others are large enough for the network and few enough
// to leave something to overlap.
constexpr std::int64_t kFirstBucket = std::int64_t{1} << 20U;
constexpr std::int64_t kLargestBucket = std::int64_t{25} << 20U;
constexpr std::int64_t kWantedBuckets = 8;

std::int64_t bucket_bytes(const std::vector<at::Tensor>& tensors) {
  std::int64_t all = 0;
  for (const at::Tensor& tensor : tensors) all += static_cast<std::int64_t>(tensor.nbytes());
  return std::clamp(all / kWantedBuckets, kFirstBucket, kLargestBucket);
}

}  // namespace

struct GradientReducer::State {
  explicit State(RankGroup& group) : ranks(group) {}

  // With these buckets from the next backward pass on.
  void start(std::vector<std::vector<std::size_t>> buckets, std::vector<std::size_t> limits);
  // The buckets as they are.
  BucketOrder current_order() const;

  RankGroup& ranks;
  std::vector<at::Tensor> parameters;
  std::unordered_map<std::size_t, std::string> names;
  std::unordered_map<const void*, std::string> names_of_tensors;
  std::int64_t cap = 0;
  BucketOrder order;
  std::vector<std::vector<std::size_t>> given;  // `order` of a resumed run, by place
  bool regrouped = false;
  std::atomic<int> untraced{0};  // buckets that will still be written to the trace
  Clock::time_point last_started;
  std::unique_ptr<c10d::Reducer> reducer;

  class Hook;
};

// Called by the reducer, on the thread of the backward pass, for each bucket whose gradients are there.
class GradientReducer::State::Hook : public c10d::CommHookInterface {
 public:
  explicit Hook(State& state) : state_(state) {}

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    const at::Tensor& buffer = bucket.getBuffer();
    const auto bytes = static_cast<std::int64_t>(buffer.nbytes());
    std::vector<at::Tensor> list{buffer};
    const Clock::time_point begin = Clock::now();
    auto future = state_.ranks.handle()->process_group->allreduce(list)->getFuture();
    state_.ranks.counts().bytes_sent += bytes_of_sum(bytes, state_.ranks.size());
    ++state_.ranks.counts().collectives;
    if (StepTrace* const trace = state_.ranks.trace()) {
      ++state_.untraced;
      future->addCallback([untraced = &state_.untraced, trace, step = trace->step(), begin, bytes,
                           index = bucket.getIndex()](c10::ivalue::Future& /*done*/) {
        trace->add({.name = "sum of bucket " + std::to_string(index),
                    .lane = StepTrace::Lane::network,
                    .begin = begin,
                    .end = Clock::now(),
                    .step = step,
                    .bytes = bytes});
        --*untraced;
      });
    }
    state_.last_started = Clock::now();
    // All gradients are there: from here the backward pass only waits.
    if (bucket.isLast()) state_.ranks.status().enter(RankPhase::waiting);
    return future;
  }

  at::Tensor parseHookResult(const c10::IValue& result) override {
    return result.isTensor() ? result.toTensor() : result.toTensorVector().at(0);
  }

 private:
  State& state_;
};

GradientReducer::GradientReducer(RankGroup& ranks, const std::vector<NamedParameter>& parameters,
                                 const BucketOrder& order)
    : state_(std::make_shared<State>(ranks)) {
  if (ranks.size() == 1) {
    state_->order = order;
    return;
  }
  std::vector<at::Tensor>& tensors = state_->parameters;
  std::map<std::string, std::size_t> places;
  for (const NamedParameter& parameter : parameters) {
    state_->names.emplace(tensors.size(), parameter.name);
    places.emplace(parameter.name, tensors.size());
    state_->names_of_tensors.emplace(parameter.value.unsafeGetTensorImpl(), parameter.name);
    tensors.push_back(parameter.value);
  }
  state_->cap = bucket_bytes(tensors);
  const std::vector<std::size_t> limits{static_cast<std::size_t>(kFirstBucket), static_cast<std::size_t>(state_->cap)};
  std::vector<std::vector<std::size_t>> buckets;
  std::vector<std::size_t> bucket_limits;
  if (order.empty()) {
    // Gradients come about in the reverse order of parameters.
    std::vector<at::Tensor> reversed(tensors.rbegin(), tensors.rend());
    std::tie(buckets, bucket_limits) = c10d::compute_bucket_assignment_by_size(reversed, limits);
    for (auto& bucket : buckets) {
      for (std::size_t& place : bucket) place = tensors.size() - 1 - place;
    }
  } else {
    std::size_t named = 0;
    for (const auto& bucket : order) {
      std::vector<std::size_t> list;
      for (const std::string& name : bucket) {
        const auto found = places.find(name);
        require<InputError>(found != places.end(), "the order of buckets names \"", name,
                            "\", which is not a parameter or comes twice; the checkpoint is of another model");
        list.push_back(found->second);
        places.erase(found);
        ++named;
      }
      buckets.push_back(std::move(list));
    }
    require<InputError>(named == tensors.size(), "the order of buckets names ", named, " parameters, but there are ",
                        tensors.size(), "; the checkpoint is of another model");
    bucket_limits.assign(buckets.size(), static_cast<std::size_t>(state_->cap));
    state_->order = order;
    state_->given = buckets;
  }
  state_->start(std::move(buckets), std::move(bucket_limits));
}

void GradientReducer::State::start(std::vector<std::vector<std::size_t>> buckets, std::vector<std::size_t> limits) {
  // The old one's hooks go first.
  reducer.reset();
  reducer = std::make_unique<c10d::Reducer>(
      parameters, std::move(buckets), std::move(limits), ranks.handle()->process_group,
      std::vector<bool>(parameters.size(), false), cap,
      /*find_unused_parameters=*/false, /*gradient_as_bucket_view=*/true, names, kFirstBucket);
  reducer->register_comm_hook(std::make_unique<Hook>(*this));
}

BucketOrder GradientReducer::State::current_order() const {
  BucketOrder current;
  for (const c10d::GradBucket& bucket : reducer->get_grad_buckets()) {
    std::vector<std::string>& list = current.emplace_back();
    for (const at::Tensor& parameter : bucket.getParameters()) {
      list.push_back(names_of_tensors.at(parameter.unsafeGetTensorImpl()));
    }
  }
  return current;
}

GradientReducer::~GradientReducer() = default;

void GradientReducer::backward(const at::Tensor& objective) {
  if (state_->ranks.size() == 1) return objective.backward();
  state_->reducer->prepare_for_forward();
  state_->reducer->prepare_for_backward({});
  try {
    objective.backward();
    state_->ranks.counts().waiting_seconds +=
        std::chrono::duration<double>(Clock::now() - state_->last_started).count();
    state_->ranks.status().enter(RankPhase::computing);
    // The sums are there a moment before the thread that brought them has written so.
    while (state_->untraced > 0) std::this_thread::yield();
    if (!state_->regrouped) regroup();
  } catch (const std::exception& error) {
    // Whatever else goes wrong in a backward pass is not the fault of the network.
    if (std::string(error.what()).find("gloo") == std::string::npos) throw;
    throw_connection_lost(state_->ranks.rank(), error);
  }
}

// Into buckets as the gradients came; rank 0 tells the others its order. Also in a resumed run, where it should be the
// order that was given: as long as c10d has not regrouped, it writes down every gradient of every step.
void GradientReducer::regroup() {
  state_->regrouped = true;
  state_->reducer->rebuild_buckets();
  const BucketOrder came = state_->current_order();
  if (state_->order.empty()) state_->order = came;
  if (came == state_->order) return;
  std::vector<std::size_t> limits(state_->given.size(), static_cast<std::size_t>(state_->cap));
  state_->start(state_->given, std::move(limits));
}

const BucketOrder& GradientReducer::order() const {
  return state_->order;
}

}  // namespace routing
