// How the spans of a run's heads grew and shrank, as its metrics.jsonl tells. Knows no torch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace routing {

// One head that learns how far back it reads; a value per logged step, in tokens.
struct SpanSeries {
  std::string attention = {};  // "layer 0"
  std::int64_t head = 0;       // in its layer
  std::vector<double> steps = {};
  std::vector<double> spans = {};
};

// In the order of the log: layer after layer, head after head. Empty where no head has a span.
//
// Throws a FileError for a file that is not there, a line that is not JSON and a value of another type.
std::vector<SpanSeries> read_span_history(const std::filesystem::path& metrics);

}  // namespace routing
