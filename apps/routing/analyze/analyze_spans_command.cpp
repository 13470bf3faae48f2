#include "commands.h"
#include "lab/runs/span_figure.h"
#include "lab/runs/span_history.h"
#include "routing/core/error.h"
#include "routing/training/run_directory.h"
#include "shell/json_text.h"
#include "shell/options.h"
#include "shell/output.h"
#include "shell/text_table.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace routing {
namespace {

using Json = nlohmann::ordered_json;

struct SpansOptions {
  std::string run;
  std::vector<std::string> paths;
  bool json = false;
};

// The heads of each attention, in order.
using HeadsByLayer = std::vector<std::pair<std::string, std::vector<const SpanSeries*>>>;

HeadsByLayer by_layer(const std::vector<SpanSeries>& heads) {
  HeadsByLayer layers;
  for (const SpanSeries& head : heads) {
    if (layers.empty() || layers.back().first != head.attention) layers.push_back({head.attention, {}});
    layers.back().second.push_back(&head);
  }
  return layers;
}

double mean_of(const std::vector<const SpanSeries*>& heads) {
  double sum = 0.0;
  for (const SpanSeries* head : heads) sum += head->spans.back();
  return sum / static_cast<double>(heads.size());
}

void print(const std::vector<SpanSeries>& heads, const std::vector<std::string>& paths) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [layer, of_layer] : by_layer(heads)) {
    double largest = 0.0;
    std::string each;
    for (const SpanSeries* head : of_layer) {
      largest = std::max(largest, head->spans.back());
      each += (each.empty() ? "" : "  ") + std::to_string(head->head) + ": " + fixed_digits(head->spans.back(), 1);
    }
    rows.push_back({layer, fixed_digits(mean_of(of_layer), 1), fixed_digits(largest, 1), each});
  }
  std::cout << text_table({{.title = "attention"},
                           {.title = "mean span", .right = true},
                           {.title = "largest", .right = true},
                           {.title = "each head", .shrinks = true}},
                          rows, output_width());
  for (const std::string& path : paths) std::cout << path << "\n";
}

Json json_of(const SpansOptions& options, const std::vector<SpanSeries>& heads, const std::vector<std::string>& paths) {
  Json all = Json::array();
  for (const SpanSeries& head : heads) {
    all.push_back({{"attention", head.attention},
                   {"head", head.head},
                   {"span", head.spans.back()},
                   {"steps", head.steps},
                   {"spans", head.spans}});
  }
  return {{"run", options.run}, {"heads", all}, {"written", paths}};
}

int run(const SpansOptions& options) {
  const std::vector<std::string> paths = options.paths.empty() ? std::vector<std::string>{"spans.png"} : options.paths;
  for (const std::string& path : paths) figure_format(path);
  const RunDirectory directory(options.run);
  const ExperimentConfig config = directory.read_config();
  const std::vector<SpanSeries> heads = read_span_history(directory.metrics_file());
  require<ConfigError>(!heads.empty(), options.run,
                       ": its log has no spans; choose a run with attention.content = span that has logged a step");
  const SpanFigure figure{.title = "How far back heads read: " + options.run,
                          .heads = heads,
                          .limit = static_cast<double>(std::get<SpanPattern>(config.patterns.span.pattern).limit)};
  for (const std::string& path : paths) write_span_figure(figure, path);
  if (options.json) {
    std::cout << json_text(json_of(options, heads, paths)) << "\n";
  } else {
    print(heads, paths);
  }
  return kDone;
}

}  // namespace

Command add_analyze_spans(CLI::App& analyze, const ProgramOptions& /*program*/) {
  const auto options = std::make_shared<SpansOptions>();
  CLI::App* app =
      add_command(analyze, "spans",
                  "How far back the heads of a run with learned spans read\n\n"
                  "A table and a picture of the spans by layer and head, in tokens, and how they came there\n"
                  "(attention.content = span). Reads config.toml and metrics.jsonl only, also of a run that\n"
                  "is still training.",
                  "routing analyze spans runs/mine --out spans.svg");
  OptionGroup runs(*app, "Run");
  runs.add({"RUN", "folder of a run"}, options->run)->required();
  OptionGroup output(*app, "Output");
  output.add({"--out FILE", "figure to write, .png or .svg; may be repeated; default: spans.png"}, options->paths);
  output.flag(kJsonFlag, options->json);
  return {app, [options] { return run(*options); }};
}

}  // namespace routing
