// Requests of every kind, changed at random: the running server answers each or says what is wrong with it, and goes
// on.
//
// SERVE_FUZZ_REQUESTS and SERVE_FUZZ_SEED ask for more of them: scripts/fuzz-http --api. (A name that begins with
// ROUTING_ would be taken for a configuration key by the programs that are started here.)
#include "served_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <random>
#include <regex>
#include <string>
#include <utility>
#include <vector>

namespace routing::changed_requests_test {
namespace {

std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::stoull(text);
}

struct Question {
  std::string path;
  Json body;
};

std::vector<Question> questions() {
  return {
      {"/v1/completions",
       {{"model", "text"},
        {"prompt", "line 7"},
        {"max_tokens", 5},
        {"temperature", 0.7},
        {"top_p", 0.9},
        {"top_k", 5},
        {"min_p", 0.1},
        {"repetition_penalty", 1.1},
        {"n", 2},
        {"seed", 3},
        {"stop", {"x", "yz"}},
        {"logprobs", 2},
        {"echo", true},
        {"stream", true},
        {"stream_options", {{"include_usage", true}}}}},
      {"/v1/completions", {{"model", "text"}, {"prompt", {{5, 6}, {7}}}, {"max_tokens", 3}, {"ignore_end", true}}},
      {"/v1/images/completions", {{"model", "images"}, {"n", 1}, {"seed", 4}, {"temperature", 1.0}}},
      {"/v1/score", {{"model", "text"}, {"text", "line 8 of a text"}, {"sequence_length", 8}, {"stride", 4}}},
      {"/tokenize", {{"model", "text"}, {"content", "line"}}},
      {"/detokenize", {{"model", "text"}, {"tokens", {108, 105}}}},
      {"/api/tokens", {{"model", "text"}, {"text", "line 9"}}},
      {"/api/clusters", {{"model", "text"}, {"text", "line 9"}, {"layer", 1}, {"head", 1}}},
      {"/api/attention", {{"model", "text"}, {"tokens", {108, 105, 110}}, {"position", 2}, {"layer", 0}}},
      {"/api/patterns", {{"pattern", "local"}, {"n", 12}, {"causal", true}, {"window", 4}}},
  };
}

class Changes {
 public:
  explicit Changes(std::uint64_t seed) : numbers_(seed) {}

  std::size_t below(std::size_t count) { return std::uniform_int_distribution<std::size_t>(0, count - 1)(numbers_); }

  // Something else in the place of a value.
  Json value() {
    const std::vector<Json> values{nullptr,
                                   true,
                                   -1,
                                   0,
                                   1,
                                   64,
                                   1e9,
                                   -1e300,
                                   0.5,
                                   std::numeric_limits<std::int64_t>::max(),
                                   std::numeric_limits<std::uint64_t>::max(),
                                   "",
                                   "text",
                                   "images",
                                   "../../etc/passwd",
                                   std::string(5000, 'a'),
                                   std::string("\0\x1f\"\\", 4),
                                   "\xf0\x9f\x8e\xa8",
                                   Json::array(),
                                   Json::object(),
                                   Json::array({1, "a", nullptr}),
                                   Json::array({-5, 1LL << 40}),
                                   Json::parse(std::string(60, '[') + std::string(60, ']')),
                                   Json{{"a", {{"b", 1}}}}};
    return values[below(values.size())];
  }

  std::string changed(Json body) {
    if (below(40) == 0) return value().dump();
    for (std::size_t changes = below(3); changes > 0 && !body.empty(); --changes) {
      auto field = body.begin();
      std::advance(field, static_cast<std::ptrdiff_t>(below(body.size())));
      if (below(5) == 0) {
        body.erase(field);
      } else {
        *field = value();
      }
    }
    if (below(10) == 0) body[below(2) == 0 ? "surprise" : "n"] = value();
    std::string text = body.dump();
    if (below(4) > 0) return text;
    // Bytes as well.
    for (std::size_t changes = 1 + below(4); changes > 0 && !text.empty(); --changes) {
      const std::size_t place = below(text.size());
      switch (below(4)) {
        case 0:
          text[place] = static_cast<char>(below(256));
          break;
        case 1:
          text.erase(place, 1 + below(9));
          break;
        case 2:
          text.insert(place, text.substr(place, below(30)));
          break;
        default:
          text.resize(place);
      }
    }
    return text;
  }

 private:
  std::mt19937_64 numbers_;
};

class ChangedRequests : public ServedModelsTest {};

TEST_F(ChangedRequests, AreAnsweredOrRefusedWithTheReason) {
  const ServedProgram server(folder(), "runs --max-tokens 64 --queue-tokens 4096 --sequences 4 --request-seconds 20");
  const Json known{{"model", "text"}, {"prompt", "line 7"}, {"max_tokens", 20}, {"seed", 3}};
  const auto text_of_known = [&] {
    return server.post_json("/v1/completions", known)["choices"][0]["text"].get<std::string>();
  };
  const std::string expected = text_of_known();
  const std::uint64_t seed = number_from_environment("SERVE_FUZZ_SEED", 1);
  const std::uint64_t requests = number_from_environment("SERVE_FUZZ_REQUESTS", 400);
  const std::vector<Question> all = questions();
  Changes changes(seed);
  std::uint64_t answered = 0;
  std::uint64_t refused = 0;
  for (std::uint64_t number = 0; number < requests; ++number) {
    const Question& question = all[changes.below(all.size())];
    const std::string body = changes.changed(question.body);
    const http::Answer answer = server.post(question.path, body);
    const std::string where = "seed " + std::to_string(seed) + ", request " + std::to_string(number) + ": " +
                              question.path + " " + body.substr(0, 500);
    if (answer.status == 200) {
      ++answered;
      continue;
    }
    ++refused;
    // Too much for the limits above is 429 or 503; nothing is a fault of the server's own.
    const bool has_reason =
        answer.status == 400 || answer.status == 404 || answer.status == 429 || answer.status == 503;
    ASSERT_TRUE(has_reason) << where << "\n" << answer.status << " " << answer.body;
    const Json error = Json::parse(answer.body)["error"];
    ASSERT_GT(error["message"].get<std::string>().size(), 10U) << where;
    ASSERT_EQ(answer.body.find(folder().string()), std::string::npos) << where;
  }
  EXPECT_GT(answered, requests / 10);
  EXPECT_GT(refused, requests / 4);
  EXPECT_EQ(text_of_known(), expected);
  EXPECT_EQ(server.get_json("/health")["status"], "ok");
}

}  // namespace
}  // namespace routing::changed_requests_test
