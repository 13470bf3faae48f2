// How ranks find each other, and what it says when they do not.
#include "routing/distributed/group/rendezvous.h"

#include "distributed/rank_threads.h"
#include "distributed/watch/memory_store.h"
#include "support/message_of.h"

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <vector>

namespace routing::rendezvous_test {
namespace {

using std::chrono::milliseconds;

// The ranks of one roll call: each signs in from a thread of its own.
class RollCall : public testing::Test {
 protected:
  std::future<Roll> sign_in(int rank, int size, RollOptions options = {.patience = milliseconds(200)}) {
    return std::async(std::launch::async, [this, rank, size, options] {
      MemoryStore store(memory_);
      return call_the_roll(store, keys_of_attempt(0), {.rank = rank, .size = size}, options);
    });
  }
  // Until so many have signed in.
  void await_arrivals(int count) {
    MemoryStore store(memory_);
    while (!store.get("routing/0/arrival/" + std::to_string(count))) std::this_thread::yield();
  }
  static std::string problem(std::future<Roll>& roll) {
    return message_of<RendezvousError>([&] { roll.get(); });
  }
  std::shared_ptr<StoreMemory> memory_ = std::make_shared<StoreMemory>();
};

TEST_F(RollCall, EverybodyKeepsItsNumberWhenAllCome) {
  std::vector<std::future<Roll>> rolls;
  for (const int rank : {2, 0, 1}) rolls.push_back(sign_in(rank, 3, {.patience = std::chrono::seconds(10)}));
  for (const int rank : {2, 0, 1}) {
    const Roll roll = rolls[static_cast<std::size_t>(rank == 2 ? 0 : rank + 1)].get();
    EXPECT_EQ(roll.rank, rank);
    EXPECT_EQ(roll.size, 3);
  }
}

TEST_F(RollCall, TwoProcessesOfOneRankAreRefusedEverywhere) {
  auto second = sign_in(1, 3);
  await_arrivals(1);
  auto again = sign_in(1, 3);
  await_arrivals(2);
  auto first = sign_in(0, 3);
  for (auto* roll : {&first, &second, &again}) {
    EXPECT_EQ(problem(*roll), "two processes have RANK 1; ranks must differ");
  }
}

// The roll was complete when it came: the others go on, but it must not take the place of another.
TEST_F(RollCall, ASecondProcessOfARankIsRefusedAlsoWhenItComesLate) {
  auto first = sign_in(0, 2);
  auto second = sign_in(1, 2);
  EXPECT_EQ(first.get().size, 2);
  EXPECT_EQ(second.get().rank, 1);
  auto again = sign_in(1, 2);
  EXPECT_NE(problem(again).find("another process has RANK 1"), std::string::npos);
}

TEST_F(RollCall, DifferentWorldSizesAreRefusedWithBoth) {
  auto second = sign_in(1, 4);
  await_arrivals(1);
  auto first = sign_in(0, 3);
  for (auto* roll : {&first, &second}) {
    EXPECT_EQ(problem(*roll), "WORLD_SIZE is 4 on rank 1, but 3 on rank 0; give all ranks the same");
  }
}

TEST_F(RollCall, ThoseThatDidNotComeAreNamed) {
  auto first = sign_in(0, 4);
  auto third = sign_in(2, 4);
  for (auto* roll : {&first, &third}) {
    EXPECT_EQ(problem(*roll),
              "WORLD_SIZE is 4, but after 0.2 s only rank 0, 2 came; start rank 1, 3 too, or set WORLD_SIZE to 2");
  }
}

TEST_F(RollCall, WithoutRankZeroTheOthersGiveUp) {
  auto second = sign_in(1, 2, {.patience = milliseconds(30)});
  EXPECT_NE(problem(second).find("rank 1 of 2 came, but rank 0 has not"), std::string::npos);
}

TEST_F(RollCall, ThoseThatCameGoOnCountedAnewAndWhoComesLateIsTold) {
  const RollOptions options{.patience = milliseconds(200), .take_who_came = true};
  auto last = sign_in(3, 4, options);
  auto first = sign_in(0, 4, options);
  auto third = sign_in(2, 4, options);
  const std::vector<Roll> rolls{first.get(), third.get(), last.get()};
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(rolls[static_cast<std::size_t>(rank)].rank, rank);
    EXPECT_EQ(rolls[static_cast<std::size_t>(rank)].size, 3);
  }
  auto late = sign_in(1, 4, options);
  EXPECT_EQ(problem(late), "rank 1 came too late: the run goes on with rank 0, 2, 3");
}

TEST(OwnAddress, IsTheOneOnTheWayToTheOther) {
  EXPECT_EQ(own_address_towards("127.0.0.1", 29500), "127.0.0.1");
  EXPECT_EQ(own_address_towards("127.0.0.7", 29500).substr(0, 4), "127.");
}

TEST(RankSession, OfOneNeedsNoStore) {
  RankSession session({.rank = 0, .size = 1, .local_rank = 0}, {});
  session.join();
  EXPECT_FALSE(session.is_watched());
  EXPECT_EQ(session.group().size(), 1);
  session.group().status().finish_step(3);
  EXPECT_EQ(session.fail("no memory", false).text(), "rank 0 failed after step 3: no memory");
  session.finish();
}

TEST(RankSession, KnowsItsPlace) {
  as_ranks(3, [](const Group& group) {
    EXPECT_EQ(group->size(), 3);
    EXPECT_EQ(group->leads(), group->rank() == 0);
    EXPECT_EQ(group->gather_texts(std::to_string(group->rank())), (std::vector<std::string>{"0", "1", "2"}));
  });
}

TEST(RankSession, SaysThatAStoreAnswersWithoutRankZero) {
  const TcpRankStore other({.port = 0}, TcpRankStore::Role::keep, std::chrono::seconds(5));
  const std::string message = message_of<RendezvousError>(
      [&] { RankSession(local_place(1, 2, other.port()), {.timeout = milliseconds(200)}).join(); });
  EXPECT_NE(message.find("the store at 127.0.0.1:" + std::to_string(other.port()) + " answers, but no rank 0"),
            std::string::npos)
      << message;
}

TEST(RankSession, ANewAttemptGoesOnWithThoseThatCome) {
  const std::uint16_t port = free_port();
  const auto session_of = [&](int rank, int attempt) {
    RankPlace place = local_place(rank, 3, port);
    place.attempt = attempt;
    auto session = std::make_unique<RankSession>(place, RankOptions{.timeout = milliseconds(2000)});
    session->join();
    return session;
  };
  // One that was started in place of a lost process does not know of earlier attempts.
  auto other = std::async(std::launch::async, [&] {
    const auto session = session_of(2, 0);
    EXPECT_EQ(session->group().rank(), 1);
    EXPECT_EQ(session->group().gather_texts("b"), (std::vector<std::string>{"a", "b"}));
    session->finish();
  });
  const auto session = session_of(0, 1);
  EXPECT_EQ(session->group().size(), 2);
  EXPECT_EQ(session->group().gather_texts("a"), (std::vector<std::string>{"a", "b"}));
  session->finish();
  other.get();
}

TEST(RankSession, TheOnlyOneThatCameKnowsHowFarItIs) {
  RankPlace place = local_place(0, 2, free_port());
  place.attempt = 1;
  RankSession session(place, {.timeout = milliseconds(800)});
  session.join();
  EXPECT_TRUE(session.is_watched());
  EXPECT_EQ(session.group().size(), 1);
  session.group().status().finish_step(5);
  EXPECT_EQ(session.fail("no memory", false).text(), "rank 0 failed after step 5: no memory");
}

}  // namespace
}  // namespace routing::rendezvous_test
