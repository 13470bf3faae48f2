#include "lab/runs/span_history.h"

#include "routing/core/error.h"
#include "routing/training/log/metrics_log.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace routing {
namespace {

SpanSeries& series_of(std::vector<SpanSeries>& all, const std::string& attention, std::int64_t head) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const SpanSeries& series) {
    return series.attention == attention && series.head == head;
  });
  if (found != all.end()) return *found;
  return all.emplace_back(SpanSeries{.attention = attention, .head = head});
}

}  // namespace

std::vector<SpanSeries> read_span_history(const std::filesystem::path& metrics) {
  std::vector<SpanSeries> all;
  try {
    for (const nlohmann::ordered_json& line : read_metrics(metrics)) {
      if (!line.contains("spans")) continue;
      for (const auto& [attention, heads] : line.at("spans").items()) {
        for (const auto& [head, span] : heads.items()) {
          SpanSeries& series = series_of(all, attention, std::stoll(head));
          series.steps.push_back(line.at("step").get<double>());
          series.spans.push_back(span.get<double>());
        }
      }
    }
  } catch (const FileError&) {
    throw;
  } catch (const std::exception& error) {  // of JSON, or of a head that is no number
    throw FileError(metrics.string() + ": is not the metrics.jsonl of a run (" + error.what() +
                    "); give the folder of a run");
  }
  return all;
}

}  // namespace routing
