// What runs leave: trainer.json, metrics.jsonl, clusters.jsonl, event files, and what the page tells of them.
#include "fuzz/scratch_files.h"
#include "fuzz/targets.h"
#include "lab/runs/run_history.h"
#include "lab/runs/run_summary.h"
#include "lab/runs/span_history.h"
#include "routing/config/toml.h"
#include "routing/interchange/bundle/sorted_table.h"
#include "routing/training/log/event_file.h"
#include "routing/training/log/metrics_log.h"
#include "routing/training/run_directory.h"
#include "runs/run_json.h"
#include "serve/page/growing_lines.h"
#include "serve/page/page_lines.h"
#include "serve/page/run_catalog.h"
#include "serve/page/run_files.h"
#include "shell/json_text.h"

#include <nlohmann/json.hpp>

#include <cstring>

namespace routing::fuzz {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

void run_trainer_json(Bytes bytes) {
  takes([&] {
    const TrainerState state = state_from_text(std::string(text_of(bytes)), "trainer.json");
    hold(state.step >= 0 && state.tokens >= 0 && state.loss_steps >= 0 && state.data_tokens >= 0, "a negative count");
    if (!one_in(4, bytes)) return;
    const std::string written = to_text(state);
    hold(to_text(state_from_text(written, "again.json")) == written, "written and read it is another state");
  });
}

// Whether the step of a line is a count up to this one, as wide as JSON's own numbers are.
bool is_up_to(const Json& line, std::int64_t step) {
  const Json& found = line.at("step");
  return found.is_number_unsigned() ? found.get<std::uint64_t>() <= static_cast<std::uint64_t>(step)
                                    : found.is_number_integer() && found.get<std::int64_t>() <= step;
}

// What a resumed training does with it.
void check_log(const std::string& text, std::int64_t step) {
  const auto path = scratch_file("log.jsonl", text);
  std::size_t lines = 0;
  const bool readable = takes([&] { lines = read_metrics(path).size(); });
  MetricsLog log(path);
  log.append({{"step", step}});
  if (readable) hold(read_metrics(path).size() == lines + 1, "a line more is not a line more");
  log.cut_back_to(step);
  for (const Json& line : read_metrics(path)) hold(is_up_to(line, step), "a later step was kept: " + json_text(line));
}

// A file that grows is read as one that was there all the time.
void check_growing(const std::string& text, std::size_t first_part) {
  class Steps : public LineListener {
   public:
    void restart() override { heard.clear(); }
    LineMark take(const Json& line) override {
      heard.push_back(line);
      return {};
    }
    std::vector<Json> heard;
  };
  Steps grown, whole;
  const auto growing = scratch_file("growing.jsonl", text.substr(0, first_part));
  GrowingLines by_parts(growing, grown);
  by_parts.refresh();
  scratch_file("growing.jsonl", text);
  by_parts.refresh();
  GrowingLines at_once(growing, whole);
  at_once.refresh();
  hold(by_parts.size() == at_once.size() && grown.heard == whole.heard, "read in two parts there are other lines");
}

// Each writes files of its own, which takes most of the time.
void run_metrics(Bytes bytes) {
  InputCutter input(bytes);
  const std::int64_t step = input.byte();
  const std::size_t first_part = input.below(4096);
  const std::string text = input.rest();
  const auto path = scratch_file("metrics.jsonl", text);
  takes([&] { read_run_history(path); });
  if (one_in(4, bytes)) {
    takes([&] { read_span_history(path); });
  }
  if (one_in(3, bytes)) check_log(text, step);
  if (one_in(5, bytes)) check_growing(text, first_part);
}

// config.toml, metrics.jsonl and clusters.jsonl of a run, with a line "----" between them.
void run_run_folder(Bytes bytes) {
  constexpr std::string_view kCut = "----\n";
  std::string_view rest = text_of(bytes);
  const fs::path folder = scratch_folder() / "served" / "run";
  for (const char* const name : {"config.toml", "metrics.jsonl", "clusters.jsonl"}) {
    const std::size_t end = std::min(rest.find(kCut), rest.size());
    scratch_file(std::string("served/run/") + name, rest.substr(0, end));
    rest.remove_prefix(std::min(rest.size(), end + kCut.size()));
  }
  if (one_in(4, bytes)) json_text(run_json(summarize_run(folder)));
  // It has no part of the files in it.
  static const RunCatalog catalog({scratch_folder() / "served"});
  RunFiles files(folder, 1);
  json_text(files.summary());
  json_text(metrics_json(files.metrics(), 0, catalog));
  files.clusters().refresh();
  json_text(clusters_json(files.clusters(), first_line_behind(files.clusters(), 0), catalog));
}

// The records of an event file, taken apart by the format's own words.
void check_records(std::string_view file) {
  const auto number = [&](std::size_t place, std::size_t bytes) {
    std::uint64_t value = 0;
    std::memcpy(&value, file.data() + place, bytes);
    return value;
  };
  while (!file.empty()) {
    hold(file.size() >= 16, "half a record");
    const std::uint64_t length = number(0, 8);
    hold(length <= file.size() - 16, "a record beyond the file");
    hold(masked_crc32c(raw(file.substr(0, 8))) == number(8, 4), "a wrong checksum of a length");
    hold(masked_crc32c(raw(file.substr(12, length))) == number(12 + length, 4), "a wrong checksum of an event");
    file.remove_prefix(16 + length);
  }
}

void run_event_file(Bytes bytes) {
  InputCutter input(bytes);
  static const fs::path folder = [] {
    fs::create_directories(scratch_folder() / "events");
    return scratch_folder() / "events";
  }();
  fs::path path;
  {
    EventFile events(folder, 1.5);
    path = events.path();
    while (!input.empty()) {
      const std::string tag = input.text(input.below(300));
      double value = 0.0;
      const std::string number = input.text(sizeof value);
      std::memcpy(&value, number.data(), number.size());
      takes([&] { events.add_scalar(tag, value, static_cast<std::int64_t>(input.below(65536)), 2.5); });
    }
    events.flush();
  }
  const std::string file = bytes_of_file(path);
  fs::remove(path);
  check_records(file);
}

std::vector<std::string> trainer_json_seeds() {
  TrainerState state;
  state.step = 5;
  state.tokens = 100;
  state.seconds = 1.5;
  state.best_eval_nats = 2.5;
  state.data_hash = "0123456789abcdef";
  state.bucket_order = {{"a", "b"}, {}};
  return {to_text(state),
          R"({"step":1,"tokens":1,"seconds":0,"loss_sum":1e308,"loss_steps":0,"last_eval_step":-1,)"
          R"("last_eval_nats":null,"best_eval_nats":null,"best_step":-1,"data_bytes":7,"data_hash":"","version":"0"})"};
}

const std::string kMetrics =
    "{\"step\":0,\"kind\":\"train\",\"tokens\":64,\"seconds\":0.5,\"loss\":5.5,\"bits_per_byte\":8.0,\"learning_rate\":"
    "0.001}\n"
    "{\"step\":1,\"kind\":\"eval\",\"split\":\"valid\",\"bits_per_byte\":7.5,\"nats\":5.1,\"tokens\":100,\"best\":true,"
    "\"validity\":\"causal\"}\n"
    "{\"step\":2,\"kind\":\"train\",\"tokens\":128,\"seconds\":1,\"loss\":null,\"spans\":{\"layer 0\":[1.5,2]}}\n";
const std::string kClusters =
    "{\"step\":3,\"layers\":[{\"layer\":0,\"heads\":[{\"head\":1,\"shares\":[0.5,0.25,0.25]}]}]}\n";

std::vector<std::string> metrics_seeds() {
  return {kMetrics + literal("\x40\0\1"),
          kMetrics + "{\"step\":18446744073709551615}\n{\"step\":1.5}\n[]\n{\"st" + literal("\0\1\5")};
}

std::vector<std::string> run_folder_seeds() {
  return {to_toml(ExperimentConfig{}) + "----\n" + kMetrics + "----\n" + kClusters,
          "name = \"a\"\n[train]\nsteps = 3\n[data]\npath = \"x/y\"\n----\n" + kMetrics + "----\n" + kClusters,
          "----\n" + kMetrics + "----\n" + kClusters + kClusters};
}

std::vector<std::string> event_file_seeds() {
  return {"train/loss12345678" + literal("\1\0\12\0"), "", std::string(600, 't')};
}

}  // namespace

FuzzTarget trainer_json_target() {
  return {"trainer_json", run_trainer_json, trainer_json_seeds, 1024};
}
FuzzTarget metrics_target() {
  return {"metrics", run_metrics, metrics_seeds, 1024};
}
FuzzTarget run_folder_target() {
  return {"run_folder", run_run_folder, run_folder_seeds, 1536};
}
FuzzTarget event_file_target() {
  return {"event_file", run_event_file, event_file_seeds, 1024};
}

}  // namespace routing::fuzz
