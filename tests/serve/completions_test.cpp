// Completions, images and scores of the running server are those of the other commands, bit for bit.
#include "routing/core/base64.h"
#include "served_program.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace routing::completions_test {
namespace {

class Completions : public ServedModelsTest {
 protected:
  static void SetUpTestSuite() {
    ServedModelsTest::SetUpTestSuite();
    server_ = std::make_unique<ServedProgram>(folder(), "runs");
  }
  static void TearDownTestSuite() {
    server_.reset();
    ServedModelsTest::TearDownTestSuite();
  }
  static const ServedProgram& server() { return *server_; }

  // What `routing generate` prints for each sample.
  static std::vector<Json> generated(const std::string& arguments) {
    std::istringstream lines(routing("generate runs/text --json --logprobs " + arguments));
    std::vector<Json> samples;
    for (std::string line; std::getline(lines, line);) samples.push_back(Json::parse(line));
    return samples;
  }

 private:
  static std::unique_ptr<ServedProgram> server_;
};
std::unique_ptr<ServedProgram> Completions::server_;

TEST_F(Completions, AreThoseOfGenerateBitForBit) {
  const std::vector<Json> expected = generated("--prompt 'line 7' -n 40 --seed 3 --num-samples 3");
  const Json answer = server().post_json(
      "/v1/completions",
      {{"model", "text"}, {"prompt", "line 7"}, {"max_tokens", 40}, {"seed", 3}, {"n", 3}, {"logprobs", 2}});
  EXPECT_EQ(answer["object"], "text_completion");
  EXPECT_EQ(answer["validity"], "causal");
  EXPECT_EQ(answer["seed"], 3);
  ASSERT_EQ(answer["choices"].size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    const Json& choice = answer["choices"][i];
    EXPECT_EQ(choice["text"], expected[i]["text"]);
    EXPECT_EQ(choice["logprobs"]["token_ids"], expected[i]["tokens"]);
    EXPECT_EQ(choice["logprobs"]["token_logprobs"], expected[i]["logprobs"]);
    EXPECT_EQ(choice["finish_reason"], "length");
  }
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 6);
  EXPECT_EQ(answer["usage"]["completion_tokens"], 120);
}

TEST_F(Completions, AreTheSameAmongOthersAndWithAPrefixThatWasRead) {
  const auto ask = [&](int number, bool stream) {
    return Json{{"model", "text"},           {"prompt", "line " + std::to_string(number % 3) + " of a text"},
                {"max_tokens", 30 + number}, {"seed", number},
                {"stream", stream},          {"temperature", 0.5 + 0.1 * number}};
  };
  std::vector<std::string> alone;
  for (int number = 0; number < 12; ++number) {
    alone.push_back(server().post_json("/v1/completions", ask(number, false))["choices"][0]["text"]);
  }
  std::vector<http::Client> clients;
  for (int number = 0; number < 12; ++number) {
    clients.push_back(server().begin_post("/v1/completions", ask(number, number % 2 == 0)));
  }
  for (int number = 0; number < 12; ++number) {
    const http::Answer answer = clients[static_cast<std::size_t>(number)].answer();
    ASSERT_EQ(answer.status, 200) << answer.body;
    std::string text;
    if (number % 2 == 0) {
      for (const Json& event : events_in(answer.body)) text += event["choices"][0]["text"];
    } else {
      text = Json::parse(answer.body)["choices"][0]["text"];
    }
    EXPECT_EQ(text, alone[static_cast<std::size_t>(number)]) << number;
  }
}

TEST_F(Completions, StreamsTellTheSameAsWholeAnswers) {
  Json ask{{"model", "text"}, {"prompt", "na"}, {"max_tokens", 60}, {"seed", 5}, {"n", 2}, {"logprobs", 1}};
  const Json whole = server().post_json("/v1/completions", ask);
  ask["stream"] = true;
  ask["stream_options"] = {{"include_usage", true}};
  const http::Answer answer = server().post("/v1/completions", ask.dump());
  EXPECT_EQ(answer.headers.at("content-type"), "text/event-stream");
  std::vector<Json> events = events_in(answer.body);
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back()["usage"], whole["usage"]);
  EXPECT_TRUE(events.back()["choices"].empty());
  events.pop_back();
  for (std::size_t i = 0; i < 2; ++i) {
    std::string text;
    Json ids = Json::array();
    Json reason;
    for (const Json& event : events) {
      const Json& choice = event["choices"][0];
      if (choice["index"] != i) continue;
      text += choice["text"];
      if (choice["logprobs"].is_object()) {
        for (const Json& id : choice["logprobs"]["token_ids"]) ids.push_back(id);
      }
      reason = choice["finish_reason"];
    }
    EXPECT_EQ(text, whole["choices"][i]["text"]);
    EXPECT_EQ(ids, whole["choices"][i]["logprobs"]["token_ids"]);
    EXPECT_EQ(reason, "length");
  }
}

TEST_F(Completions, StopTextsEndThemAndAreNotPartOfThem) {
  const std::string all =
      server().post_json("/v1/completions", {{"model", "text"}, {"max_tokens", 60}, {"seed", 2}})["choices"][0]["text"];
  ASSERT_GT(all.size(), 20U);
  const std::string stop = all.substr(10, 2);
  const Json answer = server().post_json(
      "/v1/completions", {{"model", "text"}, {"max_tokens", 60}, {"seed", 2}, {"stop", stop}, {"logprobs", 0}});
  const Json& choice = answer["choices"][0];
  EXPECT_EQ(choice["text"], all.substr(0, all.find(stop)));
  EXPECT_EQ(choice["finish_reason"], "stop");
}

TEST_F(Completions, EchoedPromptsAreScoredAsScoreDoes) {
  const std::string prompt = "line 3 of a text, na\xc3\xafve";
  const Json echo = server().post_json(
      "/v1/completions", {{"model", "text"}, {"prompt", prompt}, {"max_tokens", 0}, {"echo", true}, {"logprobs", 1}});
  const Json score = server().post_json("/v1/score", {{"model", "text"}, {"text", prompt}});
  const Json& choice = echo["choices"][0];
  EXPECT_EQ(choice["text"], prompt);
  EXPECT_EQ(choice["logprobs"]["token_ids"], score["tokens"]);
  ASSERT_EQ(choice["logprobs"]["token_logprobs"].size(), score["logprobs"].size());
  double sum = 0.0;
  for (std::size_t i = 0; i < score["logprobs"].size(); ++i) {
    const double value = choice["logprobs"]["token_logprobs"][i];
    EXPECT_NEAR(value, score["logprobs"][i].get<double>(), 1e-4) << i;
    sum += value;
  }
  EXPECT_NEAR(score["sum"].get<double>(), sum, 1e-3);
  EXPECT_NEAR(score["bits_per_byte"].get<double>(), -sum / std::log(2.0) / static_cast<double>(prompt.size()), 1e-4);
  // Behind an echo, offsets go on where the prompt ends.
  const Json more = server().post_json(
      "/v1/completions",
      {{"model", "text"}, {"prompt", "ab"}, {"max_tokens", 2}, {"echo", true}, {"logprobs", 0}, {"seed", 1}});
  EXPECT_EQ(more["choices"][0]["logprobs"]["text_offset"][0], 0);
  EXPECT_EQ(more["choices"][0]["logprobs"]["text_offset"][1], 1);
  EXPECT_EQ(more["choices"][0]["logprobs"]["tokens"].size(), 4U);
  EXPECT_TRUE(more["choices"][0]["text"].get<std::string>().starts_with("ab"));
}

TEST_F(Completions, SeveralPromptsAndIdsAreAnsweredInOrder) {
  const Json answer = server().post_json(
      "/v1/completions",
      {{"model", "text"}, {"prompt", Json::array({"line 1", "line 2"})}, {"max_tokens", 12}, {"n", 2}, {"seed", 9}});
  ASSERT_EQ(answer["choices"].size(), 4U);
  const Json by_ids = server().post_json(
      "/v1/completions",
      {{"model", "text"}, {"prompt", {108, 105, 110, 101, 32, 50}}, {"max_tokens", 12}, {"n", 2}, {"seed", 9}});
  EXPECT_EQ(answer["choices"][2]["text"], by_ids["choices"][0]["text"]);
  EXPECT_EQ(answer["choices"][3]["text"], by_ids["choices"][1]["text"]);
  EXPECT_EQ(answer["choices"][3]["index"], 3);
}

TEST_F(Completions, TokensGoThereAndBack) {
  const std::string text = "na\xc3\xafve text";
  const Json tokens = server().post_json("/tokenize", {{"model", "text"}, {"content", text}});
  EXPECT_EQ(tokens["tokens"].size(), text.size());
  EXPECT_EQ(server().post_json("/detokenize", {{"model", "text"}, {"tokens", tokens["tokens"]}})["content"], text);
}

TEST_F(Completions, ImagesAreThoseOfGenerateAndComeRowByRow) {
  const Json file = Json::parse(routing("generate runs/images --json --seed 4 --out drawn --force"));
  Json ask{{"model", "images"}, {"seed", 4}};
  const Json whole = server().post_json("/v1/images/completions", ask);
  const std::string png = text_of(folder() / file["file"].get<std::string>());
  EXPECT_EQ(from_base64(whole["data"][0]["b64_json"].get<std::string>()), png);
  EXPECT_EQ(whole["data"][0]["nats"], file["nats"]);
  EXPECT_EQ(whole["width"], 8);
  ask["stream"] = true;
  const std::vector<Json> events = events_in(server().post("/v1/images/completions", ask.dump()).body);
  ASSERT_EQ(events.size(), 9U);
  for (std::size_t row = 0; row < 8; ++row) {
    EXPECT_EQ(events[row]["row"], row);
    EXPECT_EQ(events[row]["values"].size(), 24U);
  }
  EXPECT_EQ(events.back()["data"], whole["data"]);
}

TEST_F(Completions, ImagesAreCompletedBelowTheRowsThatAreKept) {
  const std::string original = text_of(folder() / "images/103.png");
  const Json half =
      server().post_json("/v1/images/completions", {{"model", "images"}, {"seed", 1}, {"image", to_base64(original)}});
  EXPECT_EQ(half["usage"]["prompt_tokens"], 96);
  EXPECT_EQ(half["usage"]["completion_tokens"], 96);
  const Json most = server().post_json("/v1/images/completions",
                                       {{"model", "images"}, {"seed", 1}, {"image", to_base64(original)}, {"rows", 7}});
  EXPECT_EQ(most["usage"]["completion_tokens"], 24);
  EXPECT_EQ(server().refusal("/v1/images/completions",
                             Json{{"model", "images"}, {"image", to_base64(original)}, {"rows", 8}}.dump()),
            "400 rows is 8, but images have 8; keep fewer, so that there is something left to draw");
  EXPECT_TRUE(server()
                  .refusal("/v1/images/completions", Json{{"model", "images"}, {"image", to_base64("no png")}}.dump())
                  .starts_with("400 image: is no PNG image"));
}

TEST_F(Completions, AttentionIsThatOfAnalyze) {
  const std::string text = "line 12 of a text, na\xc3\xafve";
  const Json expected = Json::parse(routing("analyze attention runs/text --json --position 20 --text '" + text + "'"));
  const Json answer = server().post_json("/api/attention", {{"model", "text"}, {"text", text}, {"position", 20}});
  EXPECT_EQ(answer["heads"], expected["heads"]);
  EXPECT_EQ(answer["predicts"], expected["predicts"]);
  EXPECT_EQ(answer["tokens"], expected["tokens"]);
  const Json tokens = server().post_json("/api/tokens", {{"model", "text"}, {"text", text}});
  EXPECT_EQ(tokens["ids"].size(), text.size());
  for (const Json& layer : tokens["layers"]) {
    for (const Json& head : layer["heads"]) {
      if (!head["routed"].get<bool>()) continue;
      const Json clusters = server().post_json(
          "/api/clusters", {{"model", "text"}, {"text", text}, {"layer", layer["layer"]}, {"head", head["head"]}});
      EXPECT_EQ(clusters["clusters"].size(), text.size());
      return;
    }
  }
  FAIL() << "no routed head: " << tokens["layers"];
}

TEST_F(Completions, WhatMakesNoSenseIsRefusedWithTheReason) {
  const auto refused = [&](const std::string& body) { return server().refusal("/v1/completions", body); };
  EXPECT_EQ(refused(R"({"model": "nobody"})"),
            "404 there is no run 'nobody'; GET /v1/models lists those that are there");
  EXPECT_EQ(refused("{}"), "400 model is missing, and there are several: images, text");
  EXPECT_EQ(refused(R"({"model": "../text"})").substr(0, 4), "404 ");
  EXPECT_EQ(refused(R"({"model": "images"})"),
            "400 images is a model of images, which have no text; POST /v1/images/completions draws them");
  EXPECT_TRUE(refused(R"({"model": "text", "prompt": [5, 300]})").starts_with("400 "))
      << refused(R"({"model": "text", "prompt": [5, 300]})");
  EXPECT_TRUE(refused(R"({"model": "text", "top_p": 3})").find("top_p is 3") != std::string::npos);
  EXPECT_EQ(server().post("/v1/models", "{}").status, 405);
  EXPECT_EQ(server().post("/v1/models", "{}").headers.at("allow"), "GET, HEAD");
  EXPECT_EQ(server().get("/v1/nothing").status, 404);
  EXPECT_EQ(server().get("/v1/models", "Origin: http://elsewhere.example\r\n").status, 403);
  EXPECT_EQ(server().get("/api/runs/nobody/metrics").status, 404);
  EXPECT_EQ(server().get("/api/runs/..%2F..%2Fetc/config").status, 400);
  EXPECT_EQ(server().get("/api/runs/text/metrics?after=x").status, 400);
}

TEST_F(Completions, ModelsAndMetricsSayWhatIsThere) {
  server().post_json("/v1/completions", {{"model", "text"}, {"max_tokens", 3}});
  const Json models = server().get_json("/v1/models");
  ASSERT_EQ(models["data"].size(), 2U);
  EXPECT_EQ(models["data"][1]["id"], "text");
  EXPECT_EQ(models["data"][1]["kind"], "text");
  EXPECT_EQ(models["data"][0]["kind"], "image");
  EXPECT_EQ(server().get_json("/v1/models/text")["id"], "text");
  EXPECT_EQ(server().get("/v1/models/nobody").status, 404);
  EXPECT_EQ(server().get_json("/health")["status"], "ok");
  const std::string metrics = server().get("/metrics").body;
  EXPECT_NE(metrics.find("routing_completions_total{status=\"200\"}"), std::string::npos);
  EXPECT_NE(metrics.find("routing_tokens_drawn_total{model=\"text\"}"), std::string::npos);
}

TEST_F(Completions, NoAnswerTellsAPathOfTheDisk) {
  const std::string place = folder().string();
  std::string all;
  for (const char* path : {"/v1/models", "/api/runs", "/api/runs/text/config", "/api/runs/text/metrics", "/metrics",
                           "/api/runs/text/samples", "/api/runs/text/clusters", "/openapi.json"}) {
    const http::Answer answer = server().get(path);
    EXPECT_EQ(answer.status, 200) << path << " " << answer.body;
    all += answer.body;
  }
  EXPECT_EQ(all.find(place), std::string::npos);
  EXPECT_EQ(all.find(fs::temp_directory_path().string() + "/"), std::string::npos);
}

TEST_F(Completions, OpenApiListsEveryAddressAndNoOther) {
  const Json paths = server().get_json("/openapi.json")["paths"];
  std::set<std::string> listed;
  for (const auto& [path, methods] : paths.items()) {
    for (const auto& [method, operation] : methods.items()) listed.insert(method + " " + path);
  }
  std::set<std::string> added;
  const std::regex route(R"re(router_\.add\("([A-Z]+)", "([^"]+)")re");
  const std::regex run_route(R"re(add_run_route\("([a-z]+)")re");
  for (const char* file : {"models", "page", "static"}) {
    const std::string source =
        text_of(fs::path(ROUTING_SOURCE_DIR) / "apps/routing/serve" / ("api_routes_" + std::string(file) + ".cpp"));
    for (std::sregex_iterator it(source.begin(), source.end(), route), end; it != end; ++it) {
      const std::string path = std::regex_replace((*it)[2].str(), std::regex(R"(\.\.\.)"), "");
      const bool is_page = path == "/" || path == "/api/runs/{id}/";
      if (!is_page) added.insert(((*it)[1] == "GET" ? "get " : "post ") + path);
    }
    for (std::sregex_iterator it(source.begin(), source.end(), run_route), end; it != end; ++it) {
      added.insert("get /api/runs/{id}/" + (*it)[1].str());
    }
  }
  EXPECT_EQ(listed, added);
}

}  // namespace
}  // namespace routing::completions_test
