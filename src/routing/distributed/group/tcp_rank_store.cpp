#include "routing/distributed/group/tcp_rank_store.h"

#include "routing/distributed/group/c10d_handles.h"
#include "routing/distributed/watch/rank_status.h"

#include <c10/util/Logging.h>
#include <torch/version.h>

#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

namespace routing {
namespace {

std::string place(const StoreAddress& address) {
  return address.host + ":" + std::to_string(address.port);
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// A connection that broke is not a programming error; whoever asked decides what it means.
template <class Action>
auto guarded(const c10d::TCPStore& store, const Action& action) {
  try {
    return action();
  } catch (const std::exception& error) {
    throw StoreError("the store at " + store.getHost() + ":" + std::to_string(store.getPort()) +
                     " does not answer: " + first_line(error.what()));
  }
}

// c10d logs every try; what has gone wrong in the end is told once, by us. Debian 12's libtorch logs through glog, 13's
// does not.
void keep_c10d_quiet() {
#ifdef C10_USE_GLOG
  FLAGS_minloglevel = google::GLOG_FATAL;
#else
  FLAGS_caffe2_log_level = c10::GLOG_FATAL;
#endif
}

}  // namespace

TcpRankStore::TcpRankStore(const StoreAddress& address, Role role, std::chrono::milliseconds patience)
    : handle_(std::make_unique<Handle>()) {
  keep_c10d_quiet();
  c10d::TCPStoreOptions options;
  options.port = address.port;
  options.isServer = role == Role::keep;
  options.waitWorkers = false;
#if TORCH_VERSION_MAJOR >= 2
  options.useLibUV = false;  // which Debian's libtorch is built without
#endif
  // c10d counts in whole seconds here, and tries no more in the last of them.
  const std::chrono::milliseconds limit = std::chrono::ceil<std::chrono::seconds>(patience);
  options.timeout = limit + std::chrono::seconds(1);
  try {
    handle_->store = c10::make_intrusive<c10d::TCPStore>(address.host, options);
  } catch (const std::exception& error) {
    const std::string reason = first_line(error.what());
    const bool taken = reason.find("in use") != std::string::npos;
    require<StoreError>(!(role == Role::keep && taken), "port ", address.port, " of ", address.host,
                        " is taken by another program; choose another MASTER_PORT for all ranks");
    require<StoreError>(role == Role::visit, "the store cannot be opened at ", place(address), ": ", reason,
                        "; MASTER_ADDR must be an address of the machine of rank 0");
    throw StoreError("nobody answered at " + place(address) + " for " + to_text(limit) +
                     "; see that rank 0 runs there, that MASTER_ADDR and MASTER_PORT name it, and that no firewall " +
                     "is in between");
  }
}

TcpRankStore::~TcpRankStore() = default;

void TcpRankStore::set(const std::string& key, const std::string& value) {
  guarded(*handle_->store, [&] {
    handle_->store->set(key, std::vector<std::uint8_t>(value.begin(), value.end()));
    return 0;
  });
}

std::optional<std::string> TcpRankStore::get(const std::string& key) {
  return guarded(*handle_->store, [&]() -> std::optional<std::string> {
    if (!handle_->store->check({key})) return std::nullopt;
    const std::vector<std::uint8_t> value = handle_->store->get(key);
    return std::string(value.begin(), value.end());
  });
}

std::int64_t TcpRankStore::add(const std::string& key, std::int64_t amount) {
  return guarded(*handle_->store, [&] { return handle_->store->add(key, amount); });
}

std::uint16_t TcpRankStore::port() const {
  return handle_->store->getPort();
}

}  // namespace routing
