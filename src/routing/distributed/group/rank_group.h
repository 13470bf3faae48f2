// The ranks of a run as the rest of the program sees them: a thin face of c10d, and its twin for one process.
//
// Collectives are called by all ranks in the same order. Sums have the same bits on every rank: each part of a tensor
// is added up on one rank and then handed to all.
#pragma once

#include "routing/core/error.h"
#include "routing/distributed/group/tcp_rank_store.h"
#include "routing/distributed/watch/rank_status.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace routing {

class StepTrace;  // watch/step_trace.h

// A collective was cut off: another rank is gone, or the network.
class ConnectionError : public Error {
 public:
  using Error::Error;
};

// What communication has cost this rank so far.
struct CommunicationCounts {
  std::int64_t collectives = 0;
  std::int64_t bytes_sent = 0;   // by the ring algorithm: a sum of B bytes over N ranks sends 2 B (N - 1) / N from each
  double waiting_seconds = 0.0;  // in which the thread that trains did nothing else
};

class PendingWork {
 public:
  virtual ~PendingWork() = default;
  // Returns when the tensors hold their sums, or what was sent or received is there.
  virtual void wait() = 0;
};

class RankGroup {
 public:
  virtual ~RankGroup() = default;
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool leads() const { return rank_ == 0; }

  // Contiguous tensors on the CPU, of equal shapes and types on all ranks; changed in place.
  virtual std::unique_ptr<PendingWork> start_sum(std::vector<at::Tensor> tensors) = 0;
  void sum(const at::Tensor& tensor) { start_sum({tensor})->wait(); }
  virtual void broadcast(const at::Tensor& tensor, int from) = 0;
  // [ranks, …]: the tensors of all.
  virtual at::Tensor gather(const at::Tensor& tensor) = 0;
  // Messages from one rank to another arrive in the order in which they were started, and are received in that order.
  virtual std::unique_ptr<PendingWork> start_send(const at::Tensor& tensor, int to) = 0;
  virtual std::unique_ptr<PendingWork> start_receive(const at::Tensor& tensor, int from) = 0;
  void send(const at::Tensor& tensor, int to) { start_send(tensor, to)->wait(); }
  void receive(const at::Tensor& tensor, int from) { start_receive(tensor, from)->wait(); }

  std::vector<std::string> gather_texts(const std::string& text);
  std::string broadcast_text(const std::string& text, int from);
  void barrier();

  RankStatus& status() { return *status_; }
  CommunicationCounts& counts() { return counts_; }
  // Where the work of this rank is written down; null as long as nobody wants to know. Who sets it takes it away again.
  StepTrace* trace() const { return trace_; }
  void set_trace(StepTrace* trace) { trace_ = trace; }

  // c10d's own object, for what else needs one (c10d_handles.h); null where there is no other rank.
  struct Handle;
  virtual const Handle* handle() const { return nullptr; }

 protected:
  RankGroup(int rank, int size, std::shared_ptr<RankStatus> status);

 private:
  int rank_, size_;
  std::shared_ptr<RankStatus> status_;
  CommunicationCounts counts_;
  StepTrace* trace_ = nullptr;
};

// One process: everything is its own already.
class OneRank : public RankGroup {
 public:
  explicit OneRank(std::shared_ptr<RankStatus> status = std::make_shared<RankStatus>())
      : RankGroup(0, 1, std::move(status)) {}
  std::unique_ptr<PendingWork> start_sum(std::vector<at::Tensor> tensors) override;
  void broadcast(const at::Tensor& tensor, int from) override;
  at::Tensor gather(const at::Tensor& tensor) override;
  std::unique_ptr<PendingWork> start_send(const at::Tensor& tensor, int to) override;
  std::unique_ptr<PendingWork> start_receive(const at::Tensor& tensor, int from) override;
};

// c10d's ProcessGroupGloo.
class GlooRanks : public RankGroup {
 public:
  struct Place {
    int rank = 0;
    int size = 1;
    std::string address = "127.0.0.1";  // of this machine, where the others reach it
    std::string prefix = {};            // of the keys in the store
  };
  GlooRanks(const TcpRankStore& store, const Place& place, std::shared_ptr<RankStatus> status);
  ~GlooRanks() override;

  std::unique_ptr<PendingWork> start_sum(std::vector<at::Tensor> tensors) override;
  void broadcast(const at::Tensor& tensor, int from) override;
  at::Tensor gather(const at::Tensor& tensor) override;
  std::unique_ptr<PendingWork> start_send(const at::Tensor& tensor, int to) override;
  std::unique_ptr<PendingWork> start_receive(const at::Tensor& tensor, int from) override;

  const Handle* handle() const override { return handle_.get(); }

 private:
  std::unique_ptr<Handle> handle_;
};

// What a sum of so many bytes sends from each of so many ranks.
std::int64_t bytes_of_sum(std::int64_t bytes, int ranks);

}  // namespace routing
