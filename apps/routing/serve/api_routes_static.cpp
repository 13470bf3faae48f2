// What does not change while the server runs: the page and the description of the API.
#include "serve/api_server.h"
#include "serve/openapi.h"
#include "serve/page/gunzip.h"
#include "serve/page/page_files.h"

#include <string>
#include <string_view>

namespace routing {
namespace {

// Nothing from elsewhere, and nobody else's frame.
constexpr const char* kContentPolicy =
    "default-src 'self'; img-src 'self' data: blob:; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

constexpr const char* kNoPage =
    "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>routing</title><p>This program was built without "
    "its page, because Node.js was not there. Install Node.js 18 or later, run <code>make web</code> and start it "
    "again.<p>The API is at work: <a href=\"openapi.json\">openapi.json</a>.</html>";

bool takes_gzip(const http::Request& request) {
  const std::string accepted = request.header("accept-encoding").value_or("");
  const std::size_t place = accepted.find("gzip");
  return place != std::string::npos && accepted.compare(place, 8, "gzip;q=0") != 0;
}

http::Response response_of(const PageFile& file, const http::Request& request) {
  http::Response response{.content_type = std::string(file.content_type),
                          .headers = {{"ETag", std::string(file.etag)},
                                      {"Cache-Control", "no-cache"},
                                      {"Vary", "Accept-Encoding"},
                                      {"X-Content-Type-Options", "nosniff"},
                                      {"Referrer-Policy", "no-referrer"},
                                      {"Content-Security-Policy", kContentPolicy}}};
  if (request.header("if-none-match").value_or("").find(file.etag) != std::string::npos) {
    response.status = 304;
    response.content_type.clear();
    return response;
  }
  if (takes_gzip(request)) {
    response.headers.emplace_back("Content-Encoding", "gzip");
    response.body = file.gzip_bytes;
  } else {
    response.body = gunzip(file.gzip_bytes);
  }
  return response;
}

}  // namespace

void ApiServer::add_static_routes() {
  router_.add("GET", "/openapi.json", [](const Asked& asked) { asked.reply->send({.body = openapi_text()}); });
  for (const PageFile& file : page_files()) {
    const auto send = [&file](const Asked& asked) { asked.reply->send(response_of(file, asked.request)); };
    router_.add("GET", std::string(file.path), send);
    if (file.path == "/index.html") router_.add("GET", "/", send);
  }
  if (!page_files().empty()) return;
  router_.add("GET", "/", [](const Asked& asked) {
    asked.reply->send({.content_type = "text/html; charset=utf-8", .body = kNoPage});
  });
}

}  // namespace routing
