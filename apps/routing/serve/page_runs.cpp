#include "serve/page_runs.h"
namespace routing {
class RunFiles {};
struct RunWatcher::Seen {};
RunPages::RunPages(RunCatalog& catalog) : catalog_(catalog) {}
RunPages::~RunPages() = default;
using Json = nlohmann::ordered_json;
Json RunPages::runs() { return Json::object(); }
Json RunPages::config(const std::string&) { return Json::object(); }
Json RunPages::metrics(const std::string&, std::int64_t) { return Json::object(); }
Json RunPages::clusters(const std::string&, std::int64_t) { return Json::object(); }
Json RunPages::samples(const std::string&) { return Json::object(); }
std::string RunPages::sample_image(const std::string&, const std::string&) { return {}; }
RunWatcher::RunWatcher(RunPages& pages) : pages_(pages) {}
std::uint64_t RunWatcher::add(const Watched&) { return ++last_; }
void RunWatcher::remove(std::uint64_t) {}
std::vector<RunWatcher::Event> RunWatcher::poll() { return {}; }
RunWatcher::~RunWatcher() = default;
}
