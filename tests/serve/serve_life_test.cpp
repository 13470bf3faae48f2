// What happens around a running server: runs come, change and go; clients go; it is told to stop; too much is asked.
#include "served_program.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>

namespace routing::serve_life_test {
namespace {

class ServeLife : public ServedModelsTest {
 protected:
  // Until it is so; false after a long time.
  static bool becomes(const std::function<bool()>& holds) {
    const auto end = std::chrono::steady_clock::now() + http::kPatience;
    while (std::chrono::steady_clock::now() < end) {
      if (holds()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  }
  static Json endless() { return {{"model", "text"}, {"max_tokens", 200000}, {"stream", true}, {"seed", 1}}; }
  static void copy_run(const std::string& name) {
    fs::remove_all(folder() / "copies" / name);
    fs::create_directories(folder() / "copies");
    fs::copy(folder() / "runs/text", folder() / "copies" / name, fs::copy_options::recursive);
  }
  static fs::path model_of(const std::string& name) {
    for (const auto& entry : fs::recursive_directory_iterator(folder() / "copies" / name)) {
      if (entry.path().filename() == "model.safetensors") return entry.path();
    }
    return {};
  }
};

TEST_F(ServeLife, ToldToStopItFinishesWhatRunsAndRefusesTheRest) {
  ServedProgram server(folder(), "runs/text");
  http::Client client =
      server.begin_post("/v1/completions", {{"max_tokens", 400}, {"stream", true}, {"seed", 1}, {"model", "text"}});
  client.receive_until("data: ");
  server.signal(SIGTERM);
  // Everything up to the last chunk comes.
  const std::string rest = client.receive_all();
  EXPECT_NE(rest.find("data: [DONE]"), std::string::npos) << rest.substr(rest.size() > 300 ? rest.size() - 300 : 0);
  EXPECT_EQ(server.wait(), 0);
  EXPECT_NE(server.notes().find("stopped"), std::string::npos);
}

TEST_F(ServeLife, AClientThatGoesAwayFreesItsPlace) {
  ServedProgram server(folder(), "runs/text --sequences 1 --queue 0");
  {
    http::Client client = server.begin_post("/v1/completions", endless());
    client.receive_until("data: ");
    EXPECT_EQ(server.post("/v1/completions", R"({"max_tokens": 1})").status, 429);
    client.reset();
  }
  EXPECT_TRUE(becomes([&] { return server.post("/v1/completions", R"({"max_tokens": 1})").status == 200; }));
  EXPECT_NE(server.get("/metrics").body.find("routing_completions_total{status=\"499\"} 1"), std::string::npos);
}

TEST_F(ServeLife, AFullQueueSaysWhenToComeBack) {
  ServedProgram server(folder(), "runs/text --sequences 1 --queue 1");
  http::Client first = server.begin_post("/v1/completions", endless());
  first.receive_until("data: ");
  http::Client second = server.begin_post("/v1/completions", endless());
  ASSERT_TRUE(
      becomes([&] { return server.get("/metrics").body.find("routing_queue_sequences 2") != std::string::npos; }));
  const http::Answer answer = server.post("/v1/completions", "{}");
  EXPECT_EQ(answer.status, 429);
  EXPECT_GE(std::stoi(answer.headers.at("retry-after")), 1);
  EXPECT_EQ(Json::parse(answer.body)["error"]["type"], "rate_limit_error");
  EXPECT_EQ(server.post("/v1/completions", R"({"n": 2})").status, 400);
}

TEST_F(ServeLife, TooLongARequestIsEndedWithTheReason) {
  ServedProgram server(folder(), "runs/text --request-seconds 0.5");
  const http::Answer streamed = server.post("/v1/completions", endless().dump());
  EXPECT_NE(streamed.body.find("longer than"), std::string::npos) << streamed.body.substr(0, 300);
  Json whole = endless();
  whole["stream"] = false;
  const http::Answer answer = server.post("/v1/completions", whole.dump());
  EXPECT_EQ(answer.status, 503);
  EXPECT_NE(answer.body.find("longer than"), std::string::npos);
}

TEST_F(ServeLife, RunsThatAppearAreFoundWhileItServes) {
  fs::remove_all(folder() / "copies");
  fs::create_directories(folder() / "copies");
  ServedProgram server(folder(), "copies");
  EXPECT_EQ(server.get_json("/v1/models")["data"].size(), 0U);
  EXPECT_EQ(server.refusal("/v1/completions", "{}"), "404 no run has a model yet; wait for its first checkpoint");
  http::Client watcher(server.port());
  watcher.send("GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  watcher.receive_until("event: runs");
  copy_run("new");
  watcher.receive_until("\"id\":\"new\"");
  EXPECT_TRUE(becomes([&] { return server.post("/v1/completions", R"({"max_tokens": 1})").status == 200; }));
  // Metrics come as they are written.
  http::Client metrics(server.port());
  metrics.send("GET /api/events?run=new HTTP/1.1\r\nHost: localhost\r\n\r\n");
  metrics.receive_until("event: metrics");
  std::ofstream(folder() / "copies/new/metrics.jsonl", std::ios::app)
      << R"({"step":77,"tokens":1,"train_loss_nats":1.5})"
      << "\n";
  metrics.receive_until("\"step\":77");
}

TEST_F(ServeLife, ACorruptCheckpointIsNamedAndTheLoadedOneGoesOn) {
  copy_run("a");
  copy_run("b");
  ServedProgram server(folder(), "copies");
  const Json ask{{"model", "a"}, {"max_tokens", 20}, {"seed", 3}};
  const Json before = server.post_json("/v1/completions", ask);
  // As another program would replace it: another file under the same name.
  const fs::path model = model_of("a");
  std::ofstream(model.string() + ".new") << "no model";
  fs::rename(model.string() + ".new", model);
  const Json after = server.post_json("/v1/completions", ask);
  EXPECT_EQ(after["choices"], before["choices"]);
  const auto problem = [&]() -> std::string {
    const Json models = server.get_json("/v1/models");
    for (const Json& each : models["data"]) {
      if (each["id"] == "a") return each.value("problem", "");
    }
    return "a is gone";
  };
  EXPECT_TRUE(becomes([&] { return problem().find("model.safetensors") != std::string::npos; })) << problem();
  EXPECT_EQ(problem().find(folder().string()), std::string::npos) << problem();
  // One that was never loaded cannot go on: the others do.
  std::ofstream(model_of("b").string() + ".new") << "no model";
  fs::rename(model_of("b").string() + ".new", model_of("b"));
  const std::string refusal = server.refusal("/v1/completions", R"({"model": "b"})");
  EXPECT_TRUE(refusal.starts_with("503 ")) << refusal;
  EXPECT_EQ(refusal.find(folder().string()), std::string::npos) << refusal;
  server.post_json("/v1/completions", ask);
}

TEST_F(ServeLife, ARunThatIsDeletedIsGoneForNewRequestsOnly) {
  copy_run("a");
  copy_run("b");
  ServedProgram server(folder(), "copies");
  Json ask = endless();
  ask["model"] = "a";
  http::Client running = server.begin_post("/v1/completions", ask);
  running.receive_until("data: ");
  fs::remove_all(folder() / "copies/a");
  EXPECT_TRUE(becomes([&] { return server.post("/v1/completions", R"({"model": "a"})").status == 404; }));
  running.receive_until("data: ");
  EXPECT_FALSE(running.has_ended());
  server.post_json("/v1/completions", {{"model", "b"}, {"max_tokens", 3}});
}

TEST_F(ServeLife, ARunThatIsReplacedIsReadAnewByNewRequestsOnly) {
  copy_run("a");
  const Json ask{{"model", "a"}, {"max_tokens", 30}, {"seed", 3}, {"logprobs", 0}};
  ServedProgram server(folder(), "copies");
  const Json before = server.post_json("/v1/completions", ask);
  Json forever = endless();
  forever["model"] = "a";
  http::Client running = server.begin_post("/v1/completions", forever);
  running.receive_until("data: ");
  // Another training under the same name.
  fs::remove_all(folder() / "copies/a");
  routing(
      "train --data text.txt --layers 1 --width 32 --sequence-length 64 --batch-size 2 --steps 4 --out copies/a "
      "--quiet");
  EXPECT_TRUE(becomes([&] {
    const http::Answer answer = server.post("/v1/completions", ask.dump());
    return answer.status == 200 &&
           Json::parse(answer.body)["choices"][0]["logprobs"] != before["choices"][0]["logprobs"];
  }));
  running.receive_until("data: ");
  EXPECT_FALSE(running.has_ended());
}

TEST_F(ServeLife, KilledAmongRequestsItStartsAgainWithTheSameAnswers) {
  const Json ask{{"model", "text"}, {"max_tokens", 40}, {"seed", 5}};
  std::string port;
  Json before;
  {
    ServedProgram server(folder(), "runs/text");
    port = std::to_string(server.port());
    before = server.post_json("/v1/completions", ask)["choices"];
    std::vector<http::Client> clients;
    for (int n = 0; n < 8; ++n) clients.push_back(server.begin_post("/v1/completions", endless()));
    for (http::Client& client : clients) client.receive_until("data: ");
    server.signal(SIGKILL);
    EXPECT_EQ(server.wait(), -1);
    // Nobody takes half a stream for a whole one: the last chunk does not come.
    for (http::Client& client : clients) {
      const std::string rest = client.receive_all();
      EXPECT_EQ(rest.find("[DONE]"), std::string::npos);
      EXPECT_FALSE(rest.ends_with("\r\n0\r\n\r\n"));
    }
  }
  // At once, under the same address.
  const ServedProgram server(folder(), "runs/text --port " + port);
  EXPECT_EQ(std::to_string(server.port()), port);
  EXPECT_EQ(server.post_json("/v1/completions", ask)["choices"], before);
}

TEST_F(ServeLife, TokensAreAskedForWhereThereAreSome) {
  std::ofstream(folder() / "tokens") << "# ours\na-secret-of-some-length\n";
  fs::permissions(folder() / "tokens", fs::perms::owner_read | fs::perms::owner_write);
  ServedProgram server(folder(), "runs/text --token-file tokens");
  EXPECT_EQ(server.get("/v1/models").status, 401);
  EXPECT_EQ(server.get("/v1/models", "Authorization: Bearer a-secret-of-some-lengti\r\n").status, 401);
  EXPECT_EQ(server.get("/v1/models", "Authorization: Bearer a-secret-of-some-length\r\n").status, 200);
  EXPECT_EQ(server.get("/health").status, 200);
}

TEST_F(ServeLife, NamesOfOtherHostsAreRefused) {
  ServedProgram server(folder(), "runs/text --name models.example --cors https://page.example");
  const auto status = [&](const std::string& host, const std::string& headers) {
    http::Client client(server.port());
    client.send("GET /v1/models HTTP/1.1\r\nHost: " + host + "\r\n" + headers + "\r\n");
    return client.answer();
  };
  EXPECT_EQ(status("evil.example", "").status, 403);
  EXPECT_EQ(status("models.example", "").status, 200);
  const http::Answer answer = status("localhost", "Origin: https://page.example\r\n");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.headers.at("access-control-allow-origin"), "https://page.example");
  EXPECT_EQ(status("localhost", "Origin: https://other.example\r\n").status, 403);
}

TEST_F(ServeLife, WrongOptionsAreRefusedBeforeAnythingIsLoaded) {
  const auto refusal = [&](const std::string& arguments) {
    const std::string command = "cd '" + folder().string() + "' && '" + ROUTING_PROGRAM + "' serve " + arguments +
                                " > .stdout 2> .stderr < /dev/null";
    const int status = std::system(command.c_str());
    return std::to_string(WEXITSTATUS(status)) + " " + text_of(folder() / ".stderr");
  };
  EXPECT_NE(refusal("nowhere").find("nowhere"), std::string::npos);
  EXPECT_EQ(refusal("runs --host 0.0.0.0").substr(0, 2), "2 ");
  EXPECT_NE(refusal("runs --host 0.0.0.0").find("--token-file"), std::string::npos);
  EXPECT_EQ(refusal("runs --host somewhere").substr(0, 2), "2 ");
  EXPECT_EQ(refusal("runs --port 70000").substr(0, 2), "2 ");
  std::ofstream(folder() / "short") << "short\n";
  fs::permissions(folder() / "short", fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_NE(refusal("runs --token-file short").find("16"), std::string::npos);
  const ServedProgram server(folder(), "runs");
  EXPECT_EQ(refusal("runs --port " + std::to_string(server.port())).substr(0, 2), "1 ");
}

}  // namespace
}  // namespace routing::serve_life_test
