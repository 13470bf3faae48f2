#include "served_program.h"

#include "routing/data/images/png_image.h"

#include <chrono>
#include <thread>

namespace routing {
namespace {

constexpr std::chrono::seconds kStart{120};

std::string request(const std::string& method, const std::string& path, const std::string& headers,
                    const std::string& body) {
  return method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers +
         (body.empty() ? ""
                       : "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n") +
         "\r\n" + body;
}

}  // namespace

ServedProgram::ServedProgram(const fs::path& folder, const std::string& arguments) : folder_(folder) {
  const fs::path out = folder / "serve.out";
  fs::remove(out);
  process_ = ::fork();
  if (process_ == 0) {
    const std::string port = arguments.find("--port") == std::string::npos ? "--port 0 " : "";
    const std::string command = "cd '" + folder.string() + "' && exec '" + ROUTING_PROGRAM + "' serve " + port +
                                arguments + " > serve.out 2> serve.err < /dev/null";
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  const auto end = std::chrono::steady_clock::now() + kStart;
  while (std::chrono::steady_clock::now() < end) {
    const std::string line = text_of(out);
    if (line.ends_with('\n')) {
      port_ = static_cast<std::uint16_t>(std::stoi(line.substr(line.rfind(':') + 1)));
      return;
    }
    if (::waitpid(process_, nullptr, WNOHANG) != 0) {
      process_ = -1;
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ADD_FAILURE() << "the server did not start: " << notes();
}

ServedProgram::~ServedProgram() {
  if (process_ <= 0) return;
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

int ServedProgram::wait() {
  int status = 0;
  ::waitpid(process_, &status, 0);
  process_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

http::Answer ServedProgram::get(const std::string& path, const std::string& headers) const {
  http::Client client(port_);
  client.send(request("GET", path, headers, ""));
  return client.answer();
}

http::Answer ServedProgram::post(const std::string& path, const std::string& body, const std::string& headers) const {
  http::Client client(port_);
  client.send(request("POST", path, headers, body));
  return client.answer();
}

Json ServedProgram::post_json(const std::string& path, const Json& body) const {
  const http::Answer answer = post(path, body.dump());
  EXPECT_EQ(answer.status, 200) << path << " " << answer.body;
  return Json::parse(answer.body);
}

std::string ServedProgram::refusal(const std::string& path, const std::string& body) const {
  const http::Answer answer = post(path, body);
  return std::to_string(answer.status) + " " + Json::parse(answer.body).at("error").at("message").get<std::string>();
}

http::Client ServedProgram::begin_post(const std::string& path, const Json& body) const {
  http::Client client(port_);
  client.send(request("POST", path, "", body.dump()));
  return client;
}

std::vector<Json> events_in(const std::string& body) {
  std::vector<Json> events;
  bool is_done = false;
  for (std::size_t begin = 0; begin < body.size();) {
    const std::size_t end = std::min(body.find("\n\n", begin), body.size());
    const std::string event = body.substr(begin, end - begin);
    begin = end + 2;
    if (event.starts_with(":")) continue;
    EXPECT_FALSE(is_done) << "after [DONE]: " << event;
    EXPECT_TRUE(event.starts_with("data: ")) << event;
    if (event == "data: [DONE]") {
      is_done = true;
    } else {
      events.push_back(Json::parse(event.substr(6)));
    }
  }
  EXPECT_TRUE(is_done) << body;
  return events;
}

fs::path ServedModelsTest::folder_;

std::string ServedModelsTest::routing(const std::string& arguments) {
  const std::string command =
      "cd '" + folder_.string() + "' && '" + ROUTING_PROGRAM + "' " + arguments + " > .stdout 2> .stderr < /dev/null";
  const int status = std::system(command.c_str());
  EXPECT_EQ(status, 0) << arguments << "\n" << text_of(folder_ / ".stderr");
  return text_of(folder_ / ".stdout");
}

void ServedModelsTest::SetUpTestSuite() {
  folder_ = fs::temp_directory_path() / ("routing_serve_" + std::to_string(::getpid()));
  fs::create_directories(folder_ / "images");
  std::ofstream text(folder_ / "text.txt");
  for (int line = 0; line < 400; ++line) text << "line " << line << " of a text, na\xc3\xafve and long enough\n";
  text.close();
  for (int number = 0; number < 24; ++number) {
    Image image{.shape = {.height = 8, .width = 8}, .values = std::vector<std::uint8_t>(192)};
    for (std::size_t i = 0; i < image.values.size(); ++i) {
      image.values[i] = static_cast<std::uint8_t>((i * 7 + static_cast<std::size_t>(number) * 31) % 256);
    }
    write_png(folder_ / "images" / (std::to_string(100 + number) + ".png"), image);
  }
  routing(
      "train --data text.txt --layers 2 --width 32 --sequence-length 64 --batch-size 2 --steps 6 --out runs/text "
      "--quiet");
  routing("train --data images --layers 2 --width 32 --batch-size 2 --steps 4 --out runs/images --quiet");
}

void ServedModelsTest::TearDownTestSuite() {
  fs::remove_all(folder_);
}

}  // namespace routing
