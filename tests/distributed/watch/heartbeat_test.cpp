// Ranks that watch over each other through a store in memory. Timeouts of a second: silent after 0.5 s, waiting for too
// long after 0.75 s, a beat every 50 ms.
#include "routing/distributed/watch/heartbeat.h"

#include "distributed/watch/memory_store.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

namespace routing::heartbeat_test {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kTimeout{1000};
constexpr milliseconds kPeriod{50};

// One rank: what it does, its beats, and the verdict that reached it.
struct Rank {
  RankStatus status;
  std::promise<RankFailure> promise;
  std::future<RankFailure> lost = promise.get_future();
  std::atomic<int> times_lost{0};
  std::unique_ptr<Heartbeat> heartbeat;

  bool is_lost() const { return lost.wait_for(milliseconds(0)) == std::future_status::ready; }
  // The verdict; waits for it longer than it may take.
  RankFailure verdict() {
    if (lost.wait_for(5 * kTimeout) != std::future_status::ready) {
      ADD_FAILURE() << "no verdict came";
      return {};
    }
    return lost.get();
  }
};

class Heartbeats : public testing::Test {
 protected:
  Rank& start(int rank, int ranks, Heartbeat::Options options = {}) {
    Rank& started = *ranks_.emplace_back(std::make_unique<Rank>());
    options.rank = rank;
    options.ranks = ranks;
    options.timeout = kTimeout;
    options.judges = rank == 0;
    options.master = "node7:29500";
    options.keys = keys_;
    options.lost = [&started, also = options.lost](const RankFailure& failure) {
      if (started.times_lost++ == 0) started.promise.set_value(failure);
      if (also) also(failure);
    };
    started.status.enter(RankPhase::computing);
    started.heartbeat = std::make_unique<Heartbeat>(std::make_unique<MemoryStore>(memory_), started.status, options);
    return started;
  }
  // The store as somebody else sees it.
  MemoryStore store() { return MemoryStore(memory_); }
  void TearDown() override {
    memory_->set(&StoreMemory::silent, false);
    ranks_.clear();
  }

  std::shared_ptr<StoreMemory> memory_ = std::make_shared<StoreMemory>();
  RankKeys keys_ = keys_of_attempt(3);
  std::vector<std::unique_ptr<Rank>> ranks_;
};

TEST(RankKeys, OfAttemptsAndRanksDiffer) {
  EXPECT_EQ(keys_of_attempt(2).beat(7), "routing/2/beat/7");
  EXPECT_EQ(keys_of_attempt(2).failed(7), "routing/2/failed/7");
  EXPECT_EQ(keys_of_attempt(2).verdict(), "routing/2/verdict");
}

TEST_F(Heartbeats, LiveRanksAreNotLost) {
  Rank& first = start(0, 2);
  Rank& second = start(1, 2);
  second.status.finish_step(4);
  std::this_thread::sleep_for(kTimeout);
  EXPECT_FALSE(first.is_lost());
  EXPECT_FALSE(second.is_lost());
  EXPECT_EQ(beat_from_text(store().get(keys_.beat(1)).value_or(""))->step, 4);
  EXPECT_FALSE(store().get(keys_.verdict()).has_value());
}

TEST_F(Heartbeats, ADeadRankIsNamedToAllOthersWithinTheTimeout) {
  Rank& first = start(0, 3);
  Rank& second = start(1, 3);
  Rank& third = start(2, 3);
  second.status.finish_step(11);
  std::this_thread::sleep_for(4 * kPeriod);
  const auto died = Clock::now();
  third.heartbeat.reset();
  for (Rank* rank : {&first, &second}) {
    const RankFailure verdict = rank->verdict();
    EXPECT_EQ(verdict.rank, 2);
    EXPECT_EQ(verdict.step, 11);
    EXPECT_NE(verdict.reason.find("nothing was heard of it for 0."), std::string::npos) << verdict.reason;
  }
  EXPECT_GE(Clock::now() - died, kTimeout / 2 - kPeriod);
  std::this_thread::sleep_for(4 * kPeriod);
  EXPECT_EQ(first.times_lost, 1);
  EXPECT_EQ(second.times_lost, 1);
  EXPECT_EQ(third.times_lost, 0);
}

TEST_F(Heartbeats, ARankThatHangsIsNamedByThoseThatWaitForIt) {
  Rank& first = start(0, 2);
  Rank& second = start(1, 2);
  first.status.enter(RankPhase::waiting);
  EXPECT_EQ(second.verdict().rank, 1);
  EXPECT_NE(first.verdict().reason.find("it hangs; rank 0 has waited 0."), std::string::npos);
}

TEST_F(Heartbeats, AnErrorReachesAllOthersAndItsOwnRankGetsItBack) {
  Rank& first = start(0, 3);
  Rank& second = start(1, 3);
  Rank& third = start(2, 3);
  second.status.finish_step(5);
  const RankFailure own = second.heartbeat->fail("the disk is full", /*secondary=*/false);
  EXPECT_EQ(own.text(), "rank 1 failed after step 5: the disk is full");
  EXPECT_EQ(first.verdict().text(), own.text());
  EXPECT_EQ(third.verdict().text(), own.text());
  EXPECT_FALSE(second.is_lost()) << "the thread that trains knows it already";
}

TEST_F(Heartbeats, AnErrorAfterThatOfAnotherRankGivesTheEarlierOne) {
  start(0, 3);
  Rank& second = start(1, 3);
  Rank& third = start(2, 3);
  const RankFailure cause = third.heartbeat->fail("the disk is full", false);
  EXPECT_EQ(second.verdict().rank, 2);
  EXPECT_EQ(second.heartbeat->fail("something else", false).text(), cause.text());
  EXPECT_FALSE(store().get(keys_.failed(1)).has_value()) << "only the first counts";
}

// Rank 1 sees its connection close before anybody knows why; rank 2 says it some time later.
TEST_F(Heartbeats, ALostConnectionWaitsForTheRankThatBrokeIt) {
  start(0, 3);
  Rank& second = start(1, 3);
  Rank& third = start(2, 3);
  auto answer = std::async(std::launch::async, [&] { return second.heartbeat->fail("connection reset", true); });
  EXPECT_EQ(answer.wait_for(4 * kPeriod), std::future_status::timeout);
  third.heartbeat->fail("the disk is full", false);
  const RankFailure verdict = answer.get();
  EXPECT_EQ(verdict.rank, 2);
  EXPECT_EQ(verdict.reason, "the disk is full");
}

TEST_F(Heartbeats, ALostConnectionThatNobodyExplainsIsTheOwnError) {
  start(0, 2);
  Rank& second = start(1, 2);
  const auto begin = Clock::now();
  EXPECT_EQ(second.heartbeat->fail("connection reset", true).text(), "rank 1 failed after step 0: connection reset");
  EXPECT_LT(Clock::now() - begin, kTimeout);
  EXPECT_FALSE(store().get(keys_.failed(1)).has_value());
}

// Rank 0 judges, and its process ends with the verdict; the store with it.
TEST_F(Heartbeats, OthersReadTheVerdictBeforeTheRankThatKeepsTheStoreEnds) {
  start(0, 3, {.lost = [this](const RankFailure&) { memory_->set(&StoreMemory::gone, true); }});
  // Not in step with rank 0.
  std::this_thread::sleep_for(kPeriod / 2);
  Rank& second = start(1, 3);
  Rank& third = start(2, 3);
  const RankFailure cause = third.heartbeat->fail("the disk is full", false);
  EXPECT_EQ(cause.rank, 2);
  EXPECT_EQ(second.verdict().text(), cause.text());
}

TEST_F(Heartbeats, TheRankThatKeepsTheStoreReturnsItsErrorWhenOthersHaveReadIt) {
  Rank& first = start(0, 2);
  std::this_thread::sleep_for(kPeriod / 2);
  Rank& second = start(1, 2);
  first.heartbeat->fail("the disk is full", false);
  memory_->set(&StoreMemory::gone, true);
  EXPECT_EQ(second.verdict().text(), "rank 0 failed after step 0: the disk is full");
}

TEST_F(Heartbeats, FinishWaitsForAllOnlyWhereTheStoreIsKept) {
  Rank& first = start(0, 2);
  Rank& second = start(1, 2);
  auto finished = std::async(std::launch::async, [&] { first.heartbeat->finish(); });
  EXPECT_EQ(finished.wait_for(6 * kPeriod), std::future_status::timeout);
  EXPECT_EQ(second.status.phase(), RankPhase::computing);
  second.heartbeat->finish();
  finished.get();
  EXPECT_EQ(beat_from_text(store().get(keys_.beat(1)).value_or(""))->phase, RankPhase::ended);
  EXPECT_FALSE(first.is_lost());
  EXPECT_FALSE(second.is_lost());
}

TEST_F(Heartbeats, FinishWaitsForNobodyWhereSomebodyElseKeepsTheStore) {
  Rank& first = start(0, 2, {.rank_keeps_store = false});
  start(1, 2, {.rank_keeps_store = false});
  const auto begin = Clock::now();
  first.heartbeat->finish();
  EXPECT_LT(Clock::now() - begin, kTimeout / 2);
}

TEST_F(Heartbeats, FinishWaitsNoLongerThanTheTimeout) {
  Rank& first = start(0, 2);
  start(1, 2);
  const auto begin = Clock::now();
  first.heartbeat->finish();
  EXPECT_GE(Clock::now() - begin, kTimeout);
  EXPECT_LT(Clock::now() - begin, 2 * kTimeout);
}

TEST_F(Heartbeats, AStoreThatIsGoneIsTheEndAndNamesItsAddress) {
  Rank& second = start(1, 2);
  second.status.finish_step(9);
  std::this_thread::sleep_for(2 * kPeriod);
  memory_->set(&StoreMemory::gone, true);
  EXPECT_EQ(second.verdict().text(), "rank 0 failed after step 9: the store that it keeps at node7:29500 is gone");
  EXPECT_EQ(second.heartbeat->fail("connection reset", true).reason, "the store that it keeps at node7:29500 is gone");
  second.heartbeat->finish();  // does not throw
}

TEST_F(Heartbeats, AStoreOfSomebodyElseThatIsGoneIsTheFaultOfNoRank) {
  Rank& second = start(1, 2, {.rank_keeps_store = false});
  memory_->set(&StoreMemory::gone, true);
  EXPECT_EQ(second.verdict().text(), "the run failed after step 0: the store at node7:29500 is gone");
}

TEST_F(Heartbeats, AStoreThatDoesNotAnswerIsTheEndToo) {
  Rank& second = start(1, 2);
  std::this_thread::sleep_for(2 * kPeriod);
  memory_->set(&StoreMemory::silent, true);
  const auto begin = Clock::now();
  const RankFailure verdict = second.verdict();
  EXPECT_LT(Clock::now() - begin, kTimeout);
  EXPECT_EQ(verdict.rank, 0);
  EXPECT_NE(verdict.reason.find("the store that it keeps at node7:29500 has not answered for 0."), std::string::npos)
      << verdict.reason;
  EXPECT_NE(verdict.reason.find("rank 1 has lost its network"), std::string::npos) << verdict.reason;
}

TEST_F(Heartbeats, AnErrorWhileTheStoreIsSilentDoesNotWaitForItForever) {
  Rank& second = start(1, 2);
  std::this_thread::sleep_for(2 * kPeriod);
  memory_->set(&StoreMemory::silent, true);
  std::this_thread::sleep_for(3 * kPeriod);
  auto answer = std::async(std::launch::async, [&] { return second.heartbeat->fail("connection reset", false); });
  EXPECT_EQ(answer.wait_for(kTimeout), std::future_status::ready);
  memory_->set(&StoreMemory::silent, false);
  const RankFailure verdict = answer.get();
  EXPECT_EQ(verdict.text(), "rank 1 failed after step 0: connection reset");
}

TEST_F(Heartbeats, AJuryOutsideOfTheRanksJudgesAndTheFirstVerdictStays) {
  MemoryStore own = store();
  Jury jury(own, keys_, 2, kTimeout);
  own.set(keys_.beat(0), to_text({.number = 1, .step = 6, .phase = RankPhase::computing}));
  own.set(keys_.beat(1), to_text({.number = 1, .step = 8, .phase = RankPhase::computing}));
  EXPECT_FALSE(jury.look().has_value());
  EXPECT_EQ(jury.last_step(), 8);
  own.set(keys_.failed(1), to_record({.rank = 1, .step = 8, .reason = "the disk is full"}));
  EXPECT_EQ(jury.look()->text(), "rank 1 failed after step 8: the disk is full");
  own.set(keys_.failed(0), to_record({.rank = 0, .step = 8, .reason = "later"}));
  EXPECT_EQ(jury.look()->text(), "rank 1 failed after step 8: the disk is full");
  EXPECT_EQ(failure_from_record(own.get(keys_.verdict()).value_or(""))->rank, 1);
}

TEST_F(Heartbeats, WordsThatNoRankWroteAreNoVerdict) {
  MemoryStore own = store();
  Jury jury(own, keys_, 2, kTimeout);
  own.set(keys_.verdict(), "what is this");
  own.set(keys_.failed(0), "2 5 there are two ranks");
  EXPECT_FALSE(jury.look().has_value());
  own.set(keys_.failed(1), to_record({.rank = 1, .step = 8, .reason = "the disk is full"}));
  EXPECT_EQ(jury.look()->text(), "rank 1 failed after step 8: the disk is full");
  EXPECT_EQ(own.get(keys_.verdict()), "1 8 the disk is full");
}

}  // namespace
}  // namespace routing::heartbeat_test
