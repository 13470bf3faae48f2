// The parts of the server that know no sockets and no models: quota, router, loops, counters.
#include "serve/compute_loop.h"
#include "serve/file_worker.h"
#include "serve/page/gunzip.h"
#include "serve/quota.h"
#include "serve/request/api_error.h"
#include "serve/router.h"
#include "serve/server_metrics.h"
#include "support/message_of.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>
#include <zlib.h>

namespace routing::server_parts_test {
namespace {

int status_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const ApiError& error) {
    return error.status();
  }
  return 200;
}

TEST(Quota, WhatIsTakenIsGivenBackAndWhatIsTooMuchIsRefused) {
  Quota quota({.sequences = 2, .waiting = 2, .bytes = 100, .tokens = 50, .tokens_per_request = 40});
  EXPECT_EQ(status_of([&] { quota.admit(3, 1); }), 400);
  auto first = quota.admit(2, 60);
  auto second = quota.admit(2, 10);
  EXPECT_EQ(status_of([&] { quota.admit(1, 1); }), 429);  // sequences
  second.reset();
  EXPECT_EQ(status_of([&] { quota.admit(1, 41); }), 429);  // bytes
  auto third = quota.admit(1, 40);
  first->add_tokens(30);
  EXPECT_EQ(status_of([&] { third->add_tokens(41); }), 400);
  EXPECT_EQ(status_of([&] { third->add_tokens(21); }), 429);
  third->add_tokens(20);
  EXPECT_EQ(quota.taken().tokens, 50);
  EXPECT_EQ(quota.taken().refused, 3);
  first.reset();
  third.reset();
  EXPECT_EQ(quota.taken().requests, 0);
  EXPECT_EQ(quota.taken().sequences, 0);
  EXPECT_EQ(quota.taken().bytes, 0);
  EXPECT_EQ(quota.taken().tokens, 0);
}

TEST(Quota, RefusalsSayWhenToComeBack) {
  Quota quota({.sequences = 1, .waiting = 0});
  const auto taken = quota.admit(1, 1);
  try {
    quota.admit(1, 1);
    FAIL() << "it was taken";
  } catch (const ApiError& error) {
    EXPECT_GE(error.retry_after, 1);
    EXPECT_LE(error.retry_after, 60);
    EXPECT_STREQ(error.what(), "the queue is full: 1 of 1 sequences are taken; come back later");
  }
}

Asked asked(const std::string& method, const std::string& path, std::vector<std::string> segments) {
  Asked one;
  one.request.method = method;
  one.request.path = path;
  one.request.segments = std::move(segments);
  return one;
}

TEST(Router, FindsByMethodAndPathAndFillsPlaces) {
  Router router;
  std::string called;
  const auto named = [&](const std::string& name) { return [&called, name](const Asked&) { called = name; }; };
  router.add("GET", "/", named("root"));
  router.add("GET", "/api/runs", named("runs"));
  router.add("GET", "/api/runs/{id}/samples/{file}", named("file"));
  router.add("GET", "/v1/models/{name...}", named("model"));
  router.add("POST", "/v1/score", named("score"));
  const auto call = [&](Asked one) {
    called.clear();
    router.find(one)(one);
    return called + " " + (one.places.contains("id") ? one.places["id"] : one.places["name"]) + " " +
           one.places["file"];
  };
  EXPECT_EQ(call(asked("GET", "/", {""})), "root  ");
  EXPECT_EQ(call(asked("HEAD", "/api/runs", {"api", "runs"})), "runs  ");
  EXPECT_EQ(call(asked("GET", "/api/runs/a%2Fb/samples/x.png", {"api", "runs", "a/b", "samples", "x.png"})),
            "file a/b x.png");
  EXPECT_EQ(call(asked("GET", "/v1/models/a/b", {"v1", "models", "a", "b"})), "model a/b ");
  Asked none = asked("GET", "/api", {"api"});
  EXPECT_EQ(status_of([&] { router.find(none); }), 404);
  Asked other = asked("GET", "/v1/score", {"v1", "score"});
  try {
    router.find(other);
    FAIL() << "found";
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status(), 405);
    EXPECT_EQ(error.allow, "POST");
  }
  EXPECT_EQ(router.routes().front(), "GET /");
}

TEST(Router, TellsClientsOfOtherServersWhereToAsk) {
  const Router router;
  const auto message = [&](const std::string& path) {
    Asked one = asked("POST", path, {});
    return message_of<ApiError>([&] { router.find(one); });
  };
  EXPECT_EQ(message("/v1/chat/completions"),
            "there is nothing at /v1/chat/completions; models here continue texts and know no chat: POST "
            "/v1/completions with \"prompt\"; GET /openapi.json lists what there is");
  EXPECT_EQ(message("/completion"),
            "there is nothing at /completion; POST /v1/completions; GET /openapi.json lists what there is");
  EXPECT_EQ(message("/nothing"), "there is nothing at /nothing; GET /openapi.json lists what there is");
}

TEST(ComputeLoop, ShortTasksComeBeforeLongOnesAndLongOnesBetweenSteps) {
  ComputeLoop loop;
  std::string order;
  loop.post_long([&] { order += 'L'; });
  loop.post_long([&] { order += 'M'; });
  loop.post([&] { order += 'a'; });
  loop.post([&] { order += 'b'; });
  int steps = 0;
  loop.run({.advance =
                [&] {
                  order += '.';
                  return ++steps < 3;
                },
            .goes_on = [&] { return steps < 3; }});
  EXPECT_EQ(order, "abL.M..");
  EXPECT_EQ(loop.waiting(), 0U);
}

TEST(ComputeLoop, AnIdleLoopHearsWhatIsPosted) {
  ComputeLoop loop;
  std::atomic<bool> done = false;
  std::thread runs([&] { loop.run({.advance = [] { return false; }, .goes_on = [&] { return !done; }}); });
  std::promise<std::thread::id> heard;
  loop.post([&] { heard.set_value(std::this_thread::get_id()); });
  EXPECT_EQ(heard.get_future().get(), runs.get_id());
  done = true;
  runs.join();
}

TEST(FileWorker, DoesWhatIsPostedInOrderAndFinishesItBeforeItEnds) {
  std::vector<int> done;
  std::atomic<int> ticks = 0;
  {
    FileWorker worker([&] { ++ticks; });
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(worker.post([&done, i] { done.push_back(i); }));
    while (ticks == 0) std::this_thread::yield();
  }
  EXPECT_EQ(done.size(), 100U);
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
}

TEST(FileWorker, TooManyTasksAreRefused) {
  std::promise<void> gate;
  std::shared_future<void> open = gate.get_future().share();
  FileWorker worker([] {});
  worker.post([open] { open.wait(); });
  int taken = 0;
  while (taken < 100000 && worker.post([] {})) ++taken;
  EXPECT_LT(taken, 100000);
  gate.set_value();
}

TEST(ServerMetrics, AreThoseOfPrometheus) {
  ServerMetrics metrics;
  metrics.first_token_after(0.002);
  metrics.first_token_after(100.0);
  metrics.finished({.status = 200, .seconds = 1.0, .prompt_tokens = 3, .new_tokens = 5});
  metrics.finished({.status = 429, .prompt_tokens = 1});
  const std::vector<ServerMetrics::Reading> readings{{"x_total", "Help.", "counter", 2.5, "model=\"a\""},
                                                     {"x_total", "Help.", "counter", 3.0, "model=\"b\""}};
  const std::string text = metrics.text(readings);
  for (const char* line :
       {"# TYPE routing_completions_total counter\n", "routing_completions_total{status=\"200\"} 1\n",
        "routing_completions_total{status=\"429\"} 1\n", "routing_prompt_tokens_total 4\n",
        "routing_time_to_first_token_seconds_bucket{le=\"0.001\"} 0\n",
        "routing_time_to_first_token_seconds_bucket{le=\"0.0025\"} 1\n",
        "routing_time_to_first_token_seconds_bucket{le=\"30\"} 1\n",
        "routing_time_to_first_token_seconds_bucket{le=\"+Inf\"} 2\n", "routing_time_to_first_token_seconds_count 2\n",
        "# HELP x_total Help.\n# TYPE x_total counter\nx_total{model=\"a\"} 2.5\nx_total{model=\"b\"} 3\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
  EXPECT_EQ(label_value("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
}

TEST(ApiError, HasTheFormOfOpenAi) {
  EXPECT_EQ(error_json(400, "no", "n").dump(),
            R"({"error":{"message":"no","type":"invalid_request_error","param":"n","code":null}})");
  EXPECT_EQ(error_json(429, "later").dump(),
            R"({"error":{"message":"later","type":"rate_limit_error","param":null,"code":null}})");
  EXPECT_EQ(error_type(503), "server_error");
}

TEST(Gunzip, GivesBackTheTextAndRefusesHalves) {
  std::string text;
  for (int i = 0; i < 40000; ++i) text += std::to_string(i);
  z_stream stream{};
  ASSERT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, MAX_WBITS + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(text.size(), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(text.data());
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  ASSERT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(packed.size() - stream.avail_out);
  deflateEnd(&stream);
  EXPECT_EQ(gunzip(packed), text);
  EXPECT_THROW(gunzip(packed.substr(0, packed.size() / 2)), std::runtime_error);
  EXPECT_THROW(gunzip("no"), std::runtime_error);
}

}  // namespace
}  // namespace routing::server_parts_test
