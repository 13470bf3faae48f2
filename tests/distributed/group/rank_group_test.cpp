// Collectives against plain loops, the store, and how ranks find each other.
#include "routing/distributed/group/rank_group.h"

#include "distributed/rank_threads.h"
#include "routing/core/random.h"
#include "routing/distributed/group/rendezvous.h"
#include "support/message_of.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <future>
#include <string>
#include <vector>

namespace routing::rank_group_test {
namespace {

using std::chrono::milliseconds;
using Tensors = std::vector<at::Tensor>;

// What a rank brings: numbers of very different sizes.
at::Tensor share_of(int rank, std::int64_t count, at::ScalarType type) {
  RandomStream stream(static_cast<std::uint64_t>(rank), "shares of ranks");
  const at::Tensor numbers = at::empty({count}, at::kDouble);
  for (std::int64_t i = 0; i < count; ++i) {
    numbers.data_ptr<double>()[i] =
        (static_cast<double>(stream.below(2000001)) - 1e6) * (type == at::kLong ? 1e9 : std::pow(10.0, i % 9 - 4));
  }
  return numbers.to(type);
}

class RanksOf : public testing::TestWithParam<int> {
 protected:
  int ranks() const { return GetParam(); }
};

TEST_P(RanksOf, SumsAreThoseOfALoopWithTheSameBitsEverywhere) {
  std::vector<Tensors> sums(static_cast<std::size_t>(ranks()));
  const std::vector<at::ScalarType> types{at::kLong, at::kDouble, at::kFloat};
  const std::vector<std::int64_t> counts{1, 2, 7, 1000, 70001};
  as_ranks(ranks(), [&](const Group& group) {
    for (const at::ScalarType type : types) {
      for (const std::int64_t count : counts) {
        const at::Tensor tensor = share_of(group->rank(), count, type);
        group->sum(tensor);
        sums[static_cast<std::size_t>(group->rank())].push_back(tensor);
      }
    }
  });
  std::size_t place = 0;
  for (const at::ScalarType type : types) {
    for (const std::int64_t count : counts) {
      at::Tensor expected = at::zeros({count}, type == at::kLong ? at::kLong : at::kDouble);
      at::Tensor size = at::zeros({count}, at::kDouble);
      for (int rank = 0; rank < ranks(); ++rank) {
        expected += share_of(rank, count, type);
        size += share_of(rank, count, type).to(at::kDouble).abs();
      }
      const at::Tensor& sum = sums[0].at(place);
      if (type == at::kLong) {
        EXPECT_TRUE(at::equal(sum, expected)) << count;
      } else {
        const double rounding = 3.0 * (type == at::kFloat ? 6e-8 : 1.2e-16);
        EXPECT_TRUE(((sum.to(at::kDouble) - expected).abs() <= size * rounding).all().item<bool>()) << count;
      }
      for (int rank = 1; rank < ranks(); ++rank) {
        EXPECT_TRUE(same_bits(sum, sums[static_cast<std::size_t>(rank)].at(place))) << "rank " << rank;
      }
      ++place;
    }
  }
}

TEST_P(RanksOf, SeveralSumsTravelTogetherAndMayBeEmpty) {
  as_ranks(ranks(), [&](const Group& group) {
    const at::Tensor counts = at::full({3}, group->rank() + 1, at::kLong);
    const at::Tensor nothing = at::empty({0}, at::kDouble);
    const at::Tensor sums = at::full({2}, 0.5, at::kDouble);
    group->start_sum({counts, nothing, sums})->wait();
    EXPECT_TRUE(at::equal(counts, at::full({3}, ranks() * (ranks() + 1) / 2, at::kLong)));
    EXPECT_TRUE(at::equal(sums, at::full({2}, 0.5 * ranks(), at::kDouble)));
  });
}

TEST_P(RanksOf, BroadcastGivesEverybodyTheTensorOfAnyRank) {
  as_ranks(ranks(), [&](const Group& group) {
    for (int from = 0; from < ranks(); ++from) {
      const at::Tensor tensor = at::arange(5, at::kFloat).view({5, 1}) + 100 * group->rank();
      group->broadcast(tensor, from);
      EXPECT_TRUE(at::equal(tensor, at::arange(5, at::kFloat).view({5, 1}) + 100 * from));
      group->broadcast(at::empty({0}, at::kFloat), from);
    }
  });
}

TEST_P(RanksOf, GatherStacksTheTensorsOfAllRanks) {
  as_ranks(ranks(), [&](const Group& group) {
    const at::Tensor rows = group->gather(at::arange(6, at::kLong).view({2, 3}) * (group->rank() + 1));
    ASSERT_EQ(rows.sizes(), at::IntArrayRef({ranks(), 2, 3}));
    for (int rank = 0; rank < ranks(); ++rank) {
      EXPECT_TRUE(at::equal(rows[rank], at::arange(6, at::kLong).view({2, 3}) * (rank + 1)));
    }
    const at::Tensor scalars = group->gather(at::full({}, group->rank(), at::kDouble));
    EXPECT_TRUE(at::equal(scalars, at::arange(ranks(), at::kDouble)));
    EXPECT_EQ(group->gather(at::empty({0, 4}, at::kFloat)).sizes(), at::IntArrayRef({ranks(), 0, 4}));
  });
}

TEST_P(RanksOf, TextsOfAnyLengthAndContentArrive) {
  const std::vector<std::string> texts{"", std::string("a\0b\n", 4), std::string(3000, 'x')};
  as_ranks(ranks(), [&](const Group& group) {
    const auto mine = static_cast<std::size_t>(group->rank());
    const std::vector<std::string> all = group->gather_texts(texts[mine]);
    EXPECT_EQ(all, std::vector<std::string>(texts.begin(), texts.begin() + ranks()));
    EXPECT_EQ(group->gather_texts(""), std::vector<std::string>(static_cast<std::size_t>(ranks())));
    for (int from = 0; from < ranks(); ++from) {
      EXPECT_EQ(group->broadcast_text(texts[mine], from), texts[static_cast<std::size_t>(from)]);
    }
  });
}

TEST_P(RanksOf, NobodyPassesABarrierBeforeAllHaveCome) {
  std::atomic<int> came{0};
  as_ranks(ranks(), [&](const Group& group) {
    std::this_thread::sleep_for(milliseconds(20 * group->rank()));
    ++came;
    group->barrier();
    EXPECT_EQ(came, ranks());
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, RanksOf, testing::Values(1, 2, 3), testing::PrintToStringParamName());

TEST(GlooRanks, SentTensorsArriveAtTheRankTheyAreFor) {
  as_ranks(3, [](const Group& group) {
    const int next = (group->rank() + 1) % 3;
    const int before = (group->rank() + 2) % 3;
    const at::Tensor got = at::empty({4}, at::kDouble);
    const at::Tensor mine = at::full({4}, 0.25 * group->rank(), at::kDouble);
    // The last sends after it has received: no order in which all wait.
    if (group->rank() < 2) group->send(mine, next);
    group->receive(got, before);
    if (group->rank() == 2) group->send(mine, next);
    EXPECT_TRUE(at::equal(got, at::full({4}, 0.25 * before, at::kDouble)));
  });
}

TEST(GlooRanks, CountCollectivesAndTheBytesThatEachRankSends) {
  as_ranks(3, [](const Group& group) {
    const auto spent = [&](const std::function<void()>& action) {
      const CommunicationCounts before = group->counts();
      action();
      return std::pair(group->counts().collectives - before.collectives,
                       group->counts().bytes_sent - before.bytes_sent);
    };
    using Spent = std::pair<std::int64_t, std::int64_t>;
    // 2 B (N - 1) / N with B = 96.
    EXPECT_EQ(spent([&] { group->sum(at::zeros({12}, at::kLong)); }), Spent(1, 128));
    EXPECT_EQ(spent([&] { group->broadcast(at::zeros({5}, at::kFloat), 1); }), Spent(1, group->rank() == 1 ? 40 : 0));
    EXPECT_EQ(spent([&] { group->gather(at::zeros({5}, at::kFloat)); }), Spent(1, 40));
    EXPECT_EQ(spent([&] { group->start_sum({at::zeros({0}), at::zeros({3}), at::zeros({3})})->wait(); }), Spent(2, 32));
    const at::Tensor tensor = at::zeros({7}, at::kByte);
    EXPECT_EQ(spent([&] {
                if (group->rank() == 0) group->send(tensor, 2);
                if (group->rank() == 2) group->receive(tensor, 0);
              }),
              Spent(0, group->rank() == 0 ? 7 : 0));
  });
  EXPECT_EQ(bytes_of_sum(96, 1), 0);
  EXPECT_EQ(bytes_of_sum(96, 2), 96);
  EXPECT_EQ(bytes_of_sum(96, 4), 144);
}

TEST(GlooRanks, WaitingIsARanksPhaseAndItsTimeIsCounted) {
  std::promise<Group> promise;
  std::shared_future<Group> first = promise.get_future().share();
  as_ranks(2, [&](const Group& group) {
    if (group->rank() == 0) {
      promise.set_value(group);
    } else {
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
      const auto waits = [&] { return first.get()->status().phase() == RankPhase::waiting; };
      while (!waits() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
      EXPECT_TRUE(waits());
      std::this_thread::sleep_for(milliseconds(100));
    }
    const double before = group->counts().waiting_seconds;
    group->barrier();
    EXPECT_EQ(group->status().phase(), RankPhase::computing);
    EXPECT_GE(group->counts().waiting_seconds - before, group->rank() == 0 ? 0.09 : 0.0);
  });
}

TEST(GlooRanks, RefuseTensorsThatAreNotContiguous) {
  as_ranks(2, [](const Group& group) {
    const at::Tensor columns = at::zeros({3, 2}).transpose(0, 1);
    EXPECT_NE(message_of<InputError>([&] { group->sum(columns); }).find("[2, 3]"), std::string::npos);
    EXPECT_THROW(group->broadcast(columns, 0), InputError);
    EXPECT_THROW(group->gather(columns), InputError);
  });
}

TEST(GlooRanks, ALostConnectionIsAnErrorOfItsOwnKind) {
  const std::uint16_t port = free_port();
  const auto session_of = [&](int rank) {
    auto session =
        std::make_unique<RankSession>(local_place(rank, 2, port), RankOptions{.timeout = std::chrono::seconds(5)});
    session->join();
    return session;
  };
  auto other = std::async(std::launch::async, [&] { session_of(1); });
  const auto own = session_of(0);
  other.get();
  const std::string message = message_of<ConnectionError>([&] { own->group().barrier(); });
  EXPECT_NE(message.find("rank 0 lost the connection to another rank ("), std::string::npos) << message;
}

TEST(OneRank, SendsAndReceivesNothing) {
  OneRank group;
  EXPECT_EQ(message_of<InputError>([&] { group.send(at::zeros({1}), 1); }),
            "a tensor for rank 1, but there is only rank 0");
  EXPECT_EQ(message_of<InputError>([&] { group.receive(at::zeros({1}), 2); }),
            "a tensor of rank 2, but there is only rank 0");
  EXPECT_EQ(message_of<InputError>([&] { group.broadcast(at::zeros({1}), 3); }),
            "a broadcast from rank 3, but there is only rank 0");
  const at::Tensor own = at::zeros({2});
  group.gather(own).fill_(1.0);
  EXPECT_TRUE(at::equal(own, at::zeros({2}))) << "what is gathered is a copy";
  EXPECT_TRUE(group.leads());
}

TEST(TcpRankStore, WordsAndNumbersAreThoseOfAllConnections) {
  TcpRankStore kept({.port = 0}, TcpRankStore::Role::keep, std::chrono::seconds(5));
  ASSERT_GT(kept.port(), 0);
  TcpRankStore visitor({.port = kept.port()}, TcpRankStore::Role::visit, std::chrono::seconds(5));
  EXPECT_EQ(visitor.get("word"), std::nullopt);
  kept.set("word", std::string("a\0b", 3));
  EXPECT_EQ(visitor.get("word"), std::string("a\0b", 3));
  visitor.set("word", "");
  EXPECT_EQ(kept.get("word"), "");
  EXPECT_EQ(kept.add("number", 2), 2);
  EXPECT_EQ(visitor.add("number", 40), 42);
}

TEST(TcpRankStore, ATakenPortIsNamed) {
  const TcpRankStore kept({.port = 0}, TcpRankStore::Role::keep, std::chrono::seconds(5));
  const std::string message = message_of<StoreError>(
      [&] { TcpRankStore({.port = kept.port()}, TcpRankStore::Role::keep, std::chrono::seconds(5)); });
  EXPECT_NE(message.find("port " + std::to_string(kept.port()) + " of 127.0.0.1 is taken"), std::string::npos)
      << message;
  EXPECT_NE(message.find("another MASTER_PORT"), std::string::npos) << message;
}

TEST(TcpRankStore, AMasterThatDoesNotAnswerIsNamedWithTheTime) {
  const std::uint16_t port = free_port();
  const std::string message =
      message_of<StoreError>([&] { TcpRankStore({.port = port}, TcpRankStore::Role::visit, milliseconds(300)); });
  EXPECT_NE(message.find("nobody answered at 127.0.0.1:" + std::to_string(port) + " for 1.0 s"), std::string::npos)
      << message;
}

TEST(TcpRankStore, VisitorsWaitForAStoreThatOpensLater) {
  const std::uint16_t port = free_port();
  auto visit = std::async(std::launch::async, [&] {
    return TcpRankStore({.port = port}, TcpRankStore::Role::visit, milliseconds(900)).get("word");
  });
  std::this_thread::sleep_for(milliseconds(200));
  TcpRankStore kept({.port = port}, TcpRankStore::Role::keep, std::chrono::seconds(5));
  EXPECT_EQ(visit.get(), std::nullopt);
}

TEST(TcpRankStore, IsGoneWithTheProcessThatKeepsIt) {
  auto kept = std::make_unique<TcpRankStore>(StoreAddress{}, TcpRankStore::Role::keep, std::chrono::seconds(5));
  const std::uint16_t port = kept->port();
  TcpRankStore visitor({.port = port}, TcpRankStore::Role::visit, std::chrono::seconds(5));
  EXPECT_EQ(visitor.get("word"), std::nullopt);
  // A connection that the store has not accepted yet is reset, which c10d 1.13 does not survive.
  std::this_thread::sleep_for(milliseconds(100));
  kept.reset();
  const std::string message = message_of<StoreError>([&] { visitor.get("word"); });
  EXPECT_NE(message.find("the store at 127.0.0.1:" + std::to_string(port) + " does not answer"), std::string::npos)
      << message;
  EXPECT_THROW(visitor.set("word", "value"), StoreError);
  EXPECT_THROW(visitor.add("number", 1), StoreError);
}

}  // namespace
}  // namespace routing::rank_group_test
