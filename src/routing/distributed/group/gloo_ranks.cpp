#include "routing/distributed/group/c10d_handles.h"
#include "routing/distributed/group/rank_group.h"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/version.h>

#include <chrono>
#include <utility>

namespace routing {
namespace {

// Who waits too long is for the heartbeat to judge, which knows what the others do: writing a large checkpoint may take
// longer than any timeout of a collective.
constexpr std::chrono::hours kNoLimit{24 * 7};
// One for gradients, one for totals that travel beside them.
constexpr int kGlooThreads = 2;

// Waits as `waiting`, and counts the time.
template <class Action>
void wait_for(RankGroup& group, const Action& action) {
  const PhaseGuard phase(group.status(), RankPhase::waiting);
  const auto begin = std::chrono::steady_clock::now();
  try {
    action();
  } catch (const std::exception& error) {
    throw_connection_lost(group.rank(), error);
  }
  group.counts().waiting_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

class GlooWork : public PendingWork {
 public:
  GlooWork(RankGroup& group, std::vector<at::Tensor> tensors, std::vector<c10::intrusive_ptr<c10d::Work>> work)
      : group_(group), tensors_(std::move(tensors)), work_(std::move(work)) {}
  void wait() override {
    wait_for(group_, [&] {
      for (const auto& work : work_) work->wait();
    });
  }

 private:
  RankGroup& group_;
  std::vector<at::Tensor> tensors_;
  std::vector<c10::intrusive_ptr<c10d::Work>> work_;
};

// A message on its way. Where the other rank is gone, starting it fails already.
template <class Start>
std::unique_ptr<PendingWork> started(RankGroup& group, std::vector<at::Tensor> tensors, const Start& start) {
  std::vector<c10::intrusive_ptr<c10d::Work>> work;
  try {
    work.push_back(start());
  } catch (const std::exception& error) {
    throw_connection_lost(group.rank(), error);
  }
  return std::make_unique<GlooWork>(group, std::move(tensors), std::move(work));
}

// Gloo is a group of processes in libtorch 1, and the backend of one in libtorch 2.
c10::intrusive_ptr<c10d::ProcessGroup> gloo_group(const c10::intrusive_ptr<c10d::Store>& store,
                                                  const GlooRanks::Place& place,
                                                  const c10::intrusive_ptr<c10d::ProcessGroupGloo::Options>& options) {
  auto gloo = c10::make_intrusive<c10d::ProcessGroupGloo>(store, place.rank, place.size, options);
#if TORCH_VERSION_MAJOR >= 2
  auto group = c10::make_intrusive<c10d::ProcessGroup>(store, place.rank, place.size);
  group->setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
  group->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::GLOO, gloo);
  return group;
#else
  return gloo;
#endif
}

void check(const at::Tensor& tensor) {
  require<InputError>(tensor.is_contiguous() && tensor.device().is_cpu(), "ranks exchange contiguous tensors on the ",
                      "CPU, but this one is ", tensor.toString(), " of ", tensor.sizes());
}

}  // namespace

void throw_connection_lost(int rank, const std::exception& error) {
  const std::string text = error.what();
  throw ConnectionError("rank " + std::to_string(rank) + " lost the connection to another rank (" +
                        text.substr(0, text.find('\n')) + ")");
}

GlooRanks::GlooRanks(const TcpRankStore& store, const Place& place, std::shared_ptr<RankStatus> status)
    : RankGroup(place.rank, place.size, std::move(status)), handle_(std::make_unique<Handle>()) {
  try {
    auto options = c10d::ProcessGroupGloo::Options::create(kNoLimit);
    options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(place.address));
    options->threads = kGlooThreads;
    handle_->process_group =
        gloo_group(c10::make_intrusive<c10d::PrefixStore>(place.prefix + "gloo", store.handle().store), place, options);
  } catch (const std::exception& error) {
    throw_connection_lost(place.rank, error);
  }
}

GlooRanks::~GlooRanks() = default;

std::unique_ptr<PendingWork> GlooRanks::start_sum(std::vector<at::Tensor> tensors) {
  std::vector<c10::intrusive_ptr<c10d::Work>> work;
  for (const at::Tensor& tensor : tensors) {
    check(tensor);
    if (tensor.numel() == 0) continue;
    std::vector<at::Tensor> list{tensor};
    work.push_back(handle_->process_group->allreduce(list));
    counts().bytes_sent += bytes_of_sum(static_cast<std::int64_t>(tensor.nbytes()), size());
    ++counts().collectives;
  }
  return std::make_unique<GlooWork>(*this, std::move(tensors), std::move(work));
}

void GlooRanks::broadcast(const at::Tensor& tensor, int from) {
  check(tensor);
  if (tensor.numel() == 0) return;
  std::vector<at::Tensor> list{tensor};
  c10d::BroadcastOptions options;
  options.rootRank = from;
  wait_for(*this, [&] { handle_->process_group->broadcast(list, options)->wait(); });
  if (rank() == from) counts().bytes_sent += static_cast<std::int64_t>(tensor.nbytes()) * (size() - 1);
  ++counts().collectives;
}

at::Tensor GlooRanks::gather(const at::Tensor& tensor) {
  check(tensor);
  std::vector<std::vector<at::Tensor>> outputs(1);
  for (int rank = 0; rank < size(); ++rank) outputs[0].push_back(at::empty_like(tensor));
  std::vector<at::Tensor> inputs{tensor};
  if (tensor.numel() > 0) {
    wait_for(*this, [&] { handle_->process_group->allgather(outputs, inputs)->wait(); });
    counts().bytes_sent += static_cast<std::int64_t>(tensor.nbytes()) * (size() - 1);
    ++counts().collectives;
  }
  return at::stack(outputs[0]);
}

std::unique_ptr<PendingWork> GlooRanks::start_send(const at::Tensor& tensor, int to) {
  check(tensor);
  std::vector<at::Tensor> list{tensor};
  counts().bytes_sent += static_cast<std::int64_t>(tensor.nbytes());
  return started(*this, list, [&] { return handle_->process_group->send(list, to, 0); });
}

std::unique_ptr<PendingWork> GlooRanks::start_receive(const at::Tensor& tensor, int from) {
  check(tensor);
  std::vector<at::Tensor> list{tensor};
  return started(*this, list, [&] { return handle_->process_group->recv(list, from, 0); });
}

}  // namespace routing
