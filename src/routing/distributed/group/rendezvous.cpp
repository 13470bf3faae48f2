#include "routing/distributed/group/rendezvous.h"

#include <algorithm>
#include <array>
#include <map>
#include <netdb.h>
#include <sstream>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace routing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kAttempt = "routing/attempt";
constexpr std::chrono::milliseconds kPollPause{10};
constexpr std::chrono::milliseconds kLongestGoodbye{2000};
constexpr int kVisitorsWait = 4;  // times the patience of rank 0, at the least its own

// Ranks and the numbers under which they signed in.
using Arrivals = std::map<int, std::int64_t>;

std::string list_of(const Arrivals& ranks) {
  std::string text;
  for (const auto& [rank, number] : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

// What rank 0 found: the ranks that take part, or what is wrong.
struct Finding {
  Arrivals ranks = {};
  std::string problem = {};
};

std::string record_of(const Finding& finding) {
  if (!finding.problem.empty()) return "problem " + finding.problem;
  std::string text = "ranks";
  for (const auto& [rank, number] : finding.ranks) text += " " + std::to_string(rank) + " " + std::to_string(number);
  return text;
}

Finding finding_of(const std::string& text) {
  std::istringstream words(text);
  std::string kind;
  words >> kind;
  Finding finding;
  if (kind == "problem") {
    std::getline(words >> std::ws, finding.problem);
    return finding;
  }
  std::int64_t number = 0;
  for (int rank = 0; words >> rank >> number;) finding.ranks.emplace(rank, number);
  return finding;
}

std::string double_rank(int rank) {
  return "two processes have RANK " + std::to_string(rank) + "; ranks must differ";
}

// Until all who have come know what is wrong: the store ends with the one that keeps it.
void wait_for_readers(RankStore& store, const RankKeys& keys, std::int64_t read) {
  const auto deadline = Clock::now() + kLongestGoodbye;
  while (read < store.add(keys.prefix + "arrivals", 0) && Clock::now() < deadline) {
    std::this_thread::sleep_for(kPollPause);
    read = store.add(keys.prefix + "roll_read", 0);
  }
}

// Everybody who signs in leaves "rank size" under the next number.
Finding collect(RankStore& store, const RankKeys& keys, const RankPlace& place, const RollOptions& options) {
  const auto deadline = Clock::now() + options.patience;
  Finding finding;
  std::int64_t read = 0;
  while (true) {
    while (const auto word = store.get(keys.prefix + "arrival/" + std::to_string(read + 1))) {
      ++read;
      std::istringstream numbers(*word);
      int rank = 0;
      int size = 0;
      numbers >> rank >> size;
      if (size != place.size) {
        finding.problem = "WORLD_SIZE is " + std::to_string(size) + " on rank " + std::to_string(rank) + ", but " +
                          std::to_string(place.size) + " on rank 0; give all ranks the same";
        return finding;
      }
      if (!finding.ranks.emplace(rank, read).second) {
        finding.problem = double_rank(rank);
        return finding;
      }
    }
    if (static_cast<int>(finding.ranks.size()) == place.size) return finding;
    if (Clock::now() >= deadline) break;
    std::this_thread::sleep_for(kPollPause);
  }
  if (options.take_who_came) return finding;
  Arrivals missing;
  for (int rank = 0; rank < place.size; ++rank) {
    if (!finding.ranks.contains(rank)) missing.emplace(rank, 0);
  }
  std::ostringstream text;
  text << "WORLD_SIZE is " << place.size << ", but after " << to_text(options.patience) << " only rank "
       << list_of(finding.ranks) << " came; start rank " << list_of(missing) << " too, or set WORLD_SIZE to "
       << finding.ranks.size();
  finding.problem = text.str();
  return finding;
}

// A process that was started in place of a lost one does not know how often the others have started; rank 0 does.
int current_attempt(RankStore& store, const RankPlace& place, std::chrono::milliseconds patience) {
  if (place.store_is_kept) return place.attempt;
  if (place.rank == 0) {
    store.set(kAttempt, std::to_string(place.attempt));
    return place.attempt;
  }
  const auto deadline = Clock::now() + patience;
  while (Clock::now() < deadline) {
    if (const auto text = store.get(kAttempt)) return std::stoi(*text);
    std::this_thread::sleep_for(kPollPause);
  }
  throw RendezvousError("the store at " + place.master_address + ":" + std::to_string(place.master_port) +
                        " answers, but no rank 0 of a routing run is there; see what else uses this port");
}

}  // namespace

std::string own_address_towards(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* list = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list) != 0) return host;
  std::string address = host;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    const int socket = ::socket(entry->ai_family, entry->ai_socktype | SOCK_CLOEXEC, entry->ai_protocol);
    if (socket < 0) continue;
    // Connecting a datagram socket sends nothing, but chooses the way.
    sockaddr_storage own{};
    socklen_t size = sizeof(own);
    std::array<char, NI_MAXHOST> name{};
    const bool found =
        ::connect(socket, entry->ai_addr, entry->ai_addrlen) == 0 &&
        ::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &size) == 0 &&
        getnameinfo(reinterpret_cast<sockaddr*>(&own), size, name.data(), name.size(), nullptr, 0, NI_NUMERICHOST) == 0;
    ::close(socket);
    if (!found) continue;
    address = name.data();
    break;
  }
  freeaddrinfo(list);
  return address;
}

Roll call_the_roll(RankStore& store, const RankKeys& keys, const RankPlace& place, const RollOptions& options) {
  const std::int64_t number = store.add(keys.prefix + "arrivals", 1);
  store.set(keys.prefix + "arrival/" + std::to_string(number),
            std::to_string(place.rank) + " " + std::to_string(place.size));
  const std::string roll_key = keys.prefix + "roll";
  if (place.rank == 0) store.set(roll_key, record_of(collect(store, keys, place, options)));
  const auto deadline = Clock::now() + kVisitorsWait * options.patience;
  std::optional<std::string> text;
  while (!(text = store.get(roll_key))) {
    require<RendezvousError>(Clock::now() < deadline, "rank ", place.rank, " of ", place.size,
                             " came, but rank 0 has not; start it with the same MASTER_ADDR and MASTER_PORT");
    std::this_thread::sleep_for(kPollPause);
  }
  const Finding finding = finding_of(*text);
  const std::int64_t read = store.add(keys.prefix + "roll_read", 1);
  if (!finding.problem.empty() && place.rank == 0) wait_for_readers(store, keys, read);
  require<RendezvousError>(finding.problem.empty(), finding.problem);
  const auto mine = finding.ranks.find(place.rank);
  require<RendezvousError>(mine != finding.ranks.end(), "rank ", place.rank,
                           " came too late: the run goes on with rank ", list_of(finding.ranks));
  // One that signs in under the same rank when the roll is complete must not take the other's place.
  require<RendezvousError>(mine->second == number, "another process has RANK ", place.rank,
                           " and was there before; ranks must differ");
  return {.rank = static_cast<int>(std::distance(finding.ranks.begin(), mine)),
          .size = static_cast<int>(finding.ranks.size())};
}

RankSession::RankSession(RankPlace place, RankOptions options, std::shared_ptr<RankStatus> status)
    : place_(std::move(place)), options_(std::move(options)), status_(std::move(status)) {
  if (place_.size == 1) return;
  const bool keeps = place_.rank == 0 && !place_.store_is_kept;
  if (keeps) kept_ = std::make_unique<TcpRankStore>(address(), TcpRankStore::Role::keep, options_.timeout);
  store_ = visit();
  // Whoever keeps the store for us watches from the start. Otherwise who is missing shows when the roll is called.
  if (place_.store_is_kept) {
    start_heartbeat(keys_of_attempt(place_.attempt), {.rank = place_.rank, .size = place_.size});
  }
}

std::unique_ptr<TcpRankStore> RankSession::visit() const {
  return std::make_unique<TcpRankStore>(address(), TcpRankStore::Role::visit, options_.timeout);
}

void RankSession::start_heartbeat(const RankKeys& keys, const Roll& roll) {
  heartbeat_ = std::make_unique<Heartbeat>(
      visit(), *status_,
      Heartbeat::Options{.rank = roll.rank,
                         .ranks = roll.size,
                         .timeout = options_.timeout,
                         .judges = roll.rank == 0,
                         .master = place_.master_address + ":" + std::to_string(place_.master_port),
                         .rank_keeps_store = !place_.store_is_kept,
                         .keys = keys,
                         .lost = options_.lost});
}

void RankSession::join() {
  if (place_.size == 1) {
    group_ = std::make_shared<OneRank>(status_);
    return;
  }
  const int attempt = current_attempt(*store_, place_, options_.timeout);
  const RankKeys keys = keys_of_attempt(attempt);
  const bool again = attempt > 0 && !place_.store_is_kept;
  const Roll roll = call_the_roll(
      *store_, keys, place_, {.patience = again ? options_.timeout / 4 : options_.timeout, .take_who_came = again});
  if (!heartbeat_) start_heartbeat(keys, roll);
  if (roll.size == 1) {
    group_ = std::make_shared<OneRank>(status_);
    return;
  }
  group_ = std::make_shared<GlooRanks>(
      *store_,
      GlooRanks::Place{.rank = roll.rank,
                       .size = roll.size,
                       .address = own_address_towards(place_.master_address, place_.master_port),
                       .prefix = keys.prefix},
      status_);
}

RankSession::~RankSession() = default;

void RankSession::finish() {
  if (heartbeat_) heartbeat_->finish();
}

RankFailure RankSession::fail(const std::string& reason, bool secondary) {
  if (heartbeat_) return heartbeat_->fail(reason, secondary);
  return {.rank = place_.rank, .step = status_->step(), .reason = reason};
}

}  // namespace routing
