// The real server on small models of its own, and a client that asks it.
#pragma once

#include "../cli/program_fixture.h"
#include "../serving/http/client.h"

#include <nlohmann/json.hpp>

#include <csignal>
#include <cstdint>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace routing {

using Json = nlohmann::ordered_json;

// `routing serve` in a process of its own; ends with it.
class ServedProgram {
 public:
  // `arguments` behind `routing serve`, with a free port unless they name one. Fails the test if it does not say where
  // it listens.
  ServedProgram(const fs::path& folder, const std::string& arguments);
  ~ServedProgram();
  ServedProgram(const ServedProgram&) = delete;
  ServedProgram& operator=(const ServedProgram&) = delete;

  std::uint16_t port() const { return port_; }
  void signal(int number) const { ::kill(process_, number); }
  // Its exit code, once it has ended; -1 if a signal ended it.
  int wait();
  std::string notes() const { return text_of(folder_ / "serve.err"); }

  http::Answer get(const std::string& path, const std::string& headers = "") const;
  http::Answer post(const std::string& path, const std::string& body, const std::string& headers = "") const;
  Json get_json(const std::string& path) const { return Json::parse(get(path).body); }
  // Expects 200.
  Json post_json(const std::string& path, const Json& body) const;
  // The message of an error, and its status in front: "404 there is no …".
  std::string refusal(const std::string& path, const std::string& body) const;
  // A request that is sent, but whose answer is still to come.
  http::Client begin_post(const std::string& path, const Json& body) const;

 private:
  fs::path folder_;
  pid_t process_ = -1;
  std::uint16_t port_ = 0;
};

// The objects of a stream of events, without [DONE], which must be the last.
std::vector<Json> events_in(const std::string& body);

// One folder for all tests of a program: runs/text (bytes, with routed heads) and runs/images (8 x 8), each a few steps
// old.
class ServedModelsTest : public testing::Test {
 protected:
  static void SetUpTestSuite();
  static void TearDownTestSuite();
  // Standard output of `routing ARGUMENTS` in the folder; expects exit code 0.
  static std::string routing(const std::string& arguments);
  static const fs::path& folder() { return folder_; }

 private:
  static fs::path folder_;
};

}  // namespace routing
