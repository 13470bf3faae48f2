#include "runs/run_json.h"

#include <array>
#include <cstdint>
#include <ctime>
#include <string>

namespace routing {
namespace {

std::string utc_text(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  std::array<char, 32> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", ::gmtime_r(&time, &parts));
  return {text.data(), length};
}

}  // namespace

nlohmann::ordered_json run_json(const RunSummary& run) {
  using Json = nlohmann::ordered_json;
  Json object{{"changed", utc_text(run.changed)}};
  if (!run.problem.empty()) {
    object["problem"] = run.problem;
    return object;
  }
  const RunHistory& history = run.history;
  object["state"] = to_string(run.state);
  object["name"] = run.name;
  object["data"] = run.data;
  object["parameters"] = run.parameters ? Json(*run.parameters) : Json(nullptr);
  object["step"] = history.step;
  object["steps"] = run.steps;
  object["tokens"] = static_cast<std::int64_t>(history.tokens);
  object["seconds"] = history.seconds;
  object["unit"] = history.unit ? Json(history.unit->key) : Json(nullptr);
  object["unit_name"] = history.unit ? Json(history.unit->name) : Json(nullptr);
  object["best"] = history.best ? Json(history.best->value) : Json(nullptr);
  object["best_step"] = history.best ? Json(history.best->step) : Json(nullptr);
  object["best_split"] = history.best ? Json(history.best->split) : Json(nullptr);
  object["validity"] = history.validity;
  if (!history.data_label.empty()) object["data_label"] = history.data_label;
  object["audit"] = run.audit.empty() ? "not audited" : run.audit;
  return object;
}

}  // namespace routing
