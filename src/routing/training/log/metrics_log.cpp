#include "routing/training/log/metrics_log.h"

#include "routing/core/error.h"
#include "routing/training/log/json_count.h"

#include <optional>
#include <string>
#include <string_view>

namespace routing {
namespace {

using Json = nlohmann::ordered_json;

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.size()};
}

// Takes the first whole line, with its end, off the text; nothing if there is none.
std::optional<std::string_view> take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = text.substr(0, end + 1);
  text.remove_prefix(end + 1);
  return line;
}

// Discarded if it is not JSON.
Json parsed(std::string_view line) {
  return Json::parse(line, nullptr, /*allow_exceptions=*/false);
}

std::optional<std::int64_t> step_of(const Json& object) {
  if (!object.is_object() || !object.contains("step") || !is_count(object["step"])) return std::nullopt;
  return object["step"].get<std::int64_t>();
}

}  // namespace

MetricsLog::MetricsLog(const std::filesystem::path& path) : file_(path) {
  const MappedFile mapped(path);
  const std::string_view text = text_of(mapped);
  if (text.empty() || text.back() == '\n') return;
  const std::size_t end = text.rfind('\n');
  file_.truncate(end == std::string_view::npos ? 0 : end + 1);
}

void MetricsLog::append(const Json& object) {
  const std::optional<std::int64_t> step = step_of(object);
  require<InputError>(step && *step >= 0, path().string(), ": a line needs a whole number \"step\" from 0 on, but is ",
                      object.dump(-1, ' ', false, Json::error_handler_t::replace));
  file_.write(object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

void MetricsLog::cut_back_to(std::int64_t step) {
  const std::filesystem::path path = file_.path();
  {
    const MappedFile mapped(path);
    std::string_view rest = text_of(mapped);
    AtomicFile kept(path);
    while (const auto line = take_line(rest)) {
      const std::optional<std::int64_t> line_step = step_of(parsed(*line));
      if (line_step && *line_step <= step) kept.write(std::as_bytes(std::span(line->data(), line->size())));
    }
    kept.commit();
  }
  // The old one is still open under no name.
  file_ = AppendFile(path);
}

std::vector<Json> read_metrics(const std::filesystem::path& path) {
  const MappedFile mapped(path);
  std::string_view rest = text_of(mapped);
  std::vector<Json> objects;
  while (const auto line = take_line(rest)) {
    objects.push_back(parsed(*line));
    require<FileError>(objects.back().is_object(), path.string(), ": line ", objects.size(),
                       " is not a JSON object; remove the line");
  }
  return objects;
}

}  // namespace routing
