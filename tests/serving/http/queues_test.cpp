// The queue of bytes, the order of deadlines, and the mailbox between threads.
#include "routing/serving/http/deadlines.h"
#include "routing/serving/http/exchange.h"
#include "routing/serving/http/out_queue.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace routing::http::queues_test {
namespace {

std::string sent_of(OutQueue& queue, std::size_t at_once) {
  std::string sent;
  while (!queue.empty()) {
    std::array<std::string_view, OutQueue::kViews> views;
    const std::size_t count = queue.views(views);
    std::string all;
    for (std::size_t i = 0; i < count; ++i) all += views[i];
    all.resize(std::min(all.size(), at_once));
    sent += all;
    queue.pop(all.size());
  }
  return sent;
}

TEST(OutQueue, GivesBackTheBytesInOrderHoweverTheyAreTaken) {
  std::string all;
  for (const std::size_t at_once : {1UL, 7UL, 1000UL, 40000UL, 1000000UL}) {
    OutQueue queue;
    all.clear();
    for (int i = 0; i < 60; ++i) {
      const std::string piece(i % 7 == 0 ? 5000 : static_cast<std::size_t>(i), static_cast<char>('a' + i % 26));
      queue.push(piece);
      all += piece;
    }
    EXPECT_EQ(queue.size(), all.size());
    EXPECT_EQ(sent_of(queue, at_once), all);
    EXPECT_EQ(queue.size(), 0U);
    EXPECT_EQ(queue.sent(), all.size());
    EXPECT_EQ(queue.queued(), all.size());
  }
}

TEST(OutQueue, PutsSmallPiecesTogetherAndNothingIsNothing) {
  OutQueue queue;
  queue.push("");
  EXPECT_TRUE(queue.empty());
  for (int i = 0; i < 100; ++i) queue.push("token ");
  std::array<std::string_view, OutQueue::kViews> views;
  EXPECT_EQ(queue.views(views), 1U);
  EXPECT_EQ(views[0].size(), 600U);
  queue.push(std::string(20000, 'x'));
  EXPECT_EQ(queue.views(views), 2U);
}

TEST(DeadlineQueue, GivesThoseThatAreDueInTheirOrder) {
  using Time = Deadlines<int>::Time;
  const Time start{};
  const auto at = [&](int seconds) { return start + std::chrono::seconds(seconds); };
  int one = 1, two = 2, three = 3;
  Deadlines<int> deadlines;
  EXPECT_FALSE(deadlines.earliest().has_value());
  EXPECT_EQ(deadlines.take_due(at(100)), nullptr);
  deadlines.set(&one, at(30));
  deadlines.set(&two, at(10));
  deadlines.set(&three, at(10));
  EXPECT_EQ(deadlines.earliest(), at(10));
  EXPECT_EQ(deadlines.take_due(at(9)), nullptr);
  deadlines.set(&two, at(40));  // put off
  EXPECT_EQ(deadlines.take_due(at(10)), &three);
  EXPECT_EQ(deadlines.take_due(at(10)), nullptr);
  deadlines.clear(&one);
  deadlines.clear(&one);
  EXPECT_EQ(deadlines.earliest(), at(40));
  EXPECT_EQ(deadlines.take_due(at(50)), &two);
  EXPECT_FALSE(deadlines.earliest().has_value());
}

struct Post {
  // Mail that nobody takes and who sent it hold each other.
  ~Post() { mailbox->close(); }
  int wakes = 0;
  std::shared_ptr<Mailbox> mailbox = std::make_shared<Mailbox>([this] { ++wakes; });
  std::shared_ptr<Exchange> exchange(std::size_t unsent = 1000, std::size_t waiting = 1000000) {
    return std::make_shared<Exchange>(mailbox, Exchange::Options{.unsent_bytes = unsent, .waiting_bytes = waiting});
  }
};

TEST(Exchanges, ManySmallPiecesWakeTheOtherThreadOnce) {
  Post post;
  const auto exchange = post.exchange();
  exchange->begin({});
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(exchange->write("ab"));
  exchange->end();
  EXPECT_EQ(post.wakes, 1);
  EXPECT_EQ(post.mailbox->take().size(), 1U);
  const Exchange::News news = exchange->take();
  EXPECT_TRUE(news.head.has_value());
  EXPECT_TRUE(news.streams);
  EXPECT_EQ(news.bytes.size(), 200U);
  EXPECT_TRUE(news.complete);
  EXPECT_FALSE(exchange->take().head.has_value()) << "once only";
  EXPECT_EQ(post.mailbox->waiting_bytes, 200) << "they are not sent yet";
  exchange->set_unsent(0);
  EXPECT_EQ(post.mailbox->waiting_bytes, 0);
}

TEST(Exchanges, AfterALookTheNextPieceWakesAgain) {
  Post post;
  const auto exchange = post.exchange();
  exchange->begin({});
  post.mailbox->take();
  exchange->take();
  exchange->write("a");
  exchange->write("b");
  EXPECT_EQ(post.wakes, 2);
  EXPECT_EQ(exchange->take().bytes, "ab");
}

TEST(PausesAfterMail, GrowWithTheClientsUpToFourMillisecondsAndOneAloneHasNone) {
  EXPECT_EQ(pause_after_mail(0).count(), 0);
  EXPECT_EQ(pause_after_mail(1).count(), 0);
  EXPECT_EQ(pause_after_mail(2).count(), 200);
  EXPECT_EQ(pause_after_mail(16).count(), 1600);
  EXPECT_EQ(pause_after_mail(10000).count(), 4000);
}

TEST(Exchanges, WhatIsNotSentCountsForTheLimit) {
  Post post;
  const auto exchange = post.exchange(1000);
  exchange->begin({});
  EXPECT_TRUE(exchange->write(std::string(600, 'x')));
  EXPECT_EQ(post.mailbox->waiting_bytes, 600);
  exchange->take();
  exchange->set_unsent(600);
  EXPECT_EQ(post.mailbox->waiting_bytes, 600);
  EXPECT_TRUE(exchange->write(std::string(400, 'x')));
  EXPECT_FALSE(exchange->gone());
  EXPECT_FALSE(exchange->write("x"));
  EXPECT_TRUE(exchange->gone());
  EXPECT_TRUE(exchange->take().broken);
  exchange->leave();
  EXPECT_EQ(post.mailbox->waiting_bytes, 0);
}

TEST(Exchanges, OneLargePieceIsTakenWhereNothingWaits) {
  Post post;
  const auto exchange = post.exchange(1000);
  exchange->begin({});
  EXPECT_TRUE(exchange->write(std::string(5000, 'x')));
  EXPECT_FALSE(exchange->write("x"));
}

TEST(Exchanges, AllOfThemTogetherHaveALimitBeyondAFairShare) {
  Post post;
  const auto first = post.exchange(1 << 20, 200000), second = post.exchange(1 << 20, 200000);
  first->begin({});
  second->begin({});
  EXPECT_TRUE(first->write(std::string(190000, 'x')));
  EXPECT_TRUE(second->write(std::string(60000, 'x'))) << "a share of 64 kB is everybody's";
  EXPECT_FALSE(second->write(std::string(6000, 'x')));
  EXPECT_FALSE(first->gone());
}

TEST(Exchanges, FunctionsThatHoldTheirOwnReplyAreLetGo) {
  Post post;
  std::weak_ptr<Reply> watched;
  {
    const auto exchange = post.exchange();
    const std::shared_ptr<Reply> reply = make_reply(exchange);
    watched = reply;
    reply->when_gone([reply] {});
    reply->send({});
    exchange->finish();
  }
  EXPECT_TRUE(watched.expired()) << "after an answer";
  {
    const auto exchange = post.exchange();
    const std::shared_ptr<Reply> reply = make_reply(exchange);
    watched = reply;
    post.mailbox->close();
    exchange->leave();
    reply->when_gone([reply] {});
  }
  EXPECT_TRUE(watched.expired()) << "after the end of the server";
}

TEST(Exchanges, TwoThreadsMayUseOneAtOnce) {
  Post post;
  const auto exchange = post.exchange(1 << 30, 1 << 30);
  exchange->begin({});
  std::string got;
  std::thread writer([&] {
    for (int i = 0; i < 20000; ++i) exchange->write("0123456789");
    exchange->end();
  });
  for (bool complete = false; !complete;) {
    Exchange::News news = exchange->take();
    got += news.bytes;
    complete = news.complete;
  }
  writer.join();
  EXPECT_EQ(got.size(), 200000U);
}

}  // namespace
}  // namespace routing::http::queues_test
