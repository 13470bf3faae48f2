#include "analyze/head_analysis.h"
#include "lab/figures/matrix_figure.h"
#include "lab/heads/divergence_text.h"
#include "lab/heads/jensen_shannon.h"
#include "lab/heads/probed_heads.h"
#include "shell/engine.h"
#include "shell/output.h"
#include "train/training_display.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <iostream>
#include <numbers>
#include <string>

namespace routing {
namespace {

constexpr std::size_t kColumn = 19;

std::string padded(std::string text, std::size_t width) {
  // The sign of the deviation has two bytes, but one column.
  const std::size_t extra = text.find("±") == std::string::npos ? 0 : 1;
  text.resize(std::max(text.size(), width + extra), ' ');
  return text;
}

std::string with_deviation(double mean, double deviation) {
  return fixed_digits(mean, 4) + " ± " + fixed_digits(deviation, 4);
}

std::string text_of(const Divergence& divergence) {
  return divergence.draws == 0 ? "-" : with_deviation(divergence.mean, divergence.deviation);
}

// The pattern of the content heads of all layers; "content" if there are none or several.
std::string content_name(const HeadDivergence& result) {
  std::string name;
  for (const LayerDivergence& layer : result.layers) {
    for (const std::string& pattern : layer.patterns) {
      if (ProbedHead::head_kind(pattern) == HeadKind::local || pattern == name) continue;
      if (!name.empty()) return "content";
      name = pattern;
    }
  }
  return name.empty() ? "content" : name;
}

// The mean over the content heads; nothing if there are none.
std::string unrouted_text(const LayerDivergence& layer) {
  double sum = 0.0;
  int heads = 0;
  for (std::size_t head = 0; head < layer.patterns.size(); ++head) {
    if (ProbedHead::head_kind(layer.patterns[head]) == HeadKind::local) continue;
    sum += layer.reads_nothing[head];
    ++heads;
  }
  return heads == 0 ? "-" : fixed_digits(100.0 * sum / heads, 1) + " %";
}

void print_table(const JsdOptions& options, const ProbedRun& run, const HeadDivergence& result) {
  const std::string content = content_name(result);
  const auto line = [](const std::vector<std::string>& cells) {
    std::string text = padded(cells[0], 7);
    for (std::size_t i = 1; i < cells.size(); ++i) text += padded(cells[i], i == 4 ? 12 : kColumn);
    std::cout << text.substr(0, text.find_last_not_of(' ') + 1) << "\n";
  };
  std::cout << "Jensen-Shannon divergence of rows of attention, nats: 0 for equal ones, at most ln 2 = 0.6931\n\n";
  std::vector<std::string> heading{"layer", "local | local", "local | " + content, content + " | " + content,
                                   "unrouted"};
  if (options.published) heading.insert(heading.end(), {"published l | l", "published l | r", "published r | r"});
  line(heading);
  for (std::size_t number = 0; number < result.layers.size(); ++number) {
    const LayerDivergence& layer = result.layers[number];
    std::vector<std::string> cells{std::to_string(number), text_of(layer.local_local), text_of(layer.local_content),
                                   text_of(layer.content_content), unrouted_text(layer)};
    if (options.published && number < published_divergence().size()) {
      const PublishedDivergence& theirs = published_divergence()[number];
      for (const auto& entry : {theirs.local_local, theirs.local_routing, theirs.routing_routing}) {
        cells.push_back(with_deviation(entry.mean, entry.deviation));
      }
    }
    line(cells);
  }
  std::cout << "\n";
  print_pairs(
      {{"draws", "mean ± standard deviation over " + std::to_string(options.draws) +
                     " draws of two different heads and a sequence, seed " + std::to_string(options.common.seed)},
       {"unrouted", "share of queries that a " + content + " head does not route; they are left out"}},
      11);
  if (options.published) {
    print_pairs({{"published",
                  "the paper's 10 layers on WikiText-103; not a target, because the script behind it puts what local "
                  "heads read at the wrong places (docs/facts.md, E7)"}},
                11);
  }
  print_pairs({{"data", describe_sequences(options.common, run, result.queries)}, {"model", describe_model(run)}}, 11);
}

nlohmann::ordered_json json_of(const Divergence& divergence) {
  if (divergence.draws == 0) return nullptr;
  return {{"mean", divergence.mean}, {"deviation", divergence.deviation}, {"left_out", divergence.left_out}};
}

void print_json(const JsdOptions& options, const ProbedRun& run, const HeadDivergence& result) {
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  for (const LayerDivergence& layer : result.layers) {
    nlohmann::ordered_json matrix = nlohmann::ordered_json::array();
    for (std::int64_t row = 0; row < layer.heads(); ++row) {
      matrix.push_back(std::vector<double>(layer.matrix.begin() + row * layer.heads(),
                                           layer.matrix.begin() + (row + 1) * layer.heads()));
    }
    layers.push_back({{"patterns", layer.patterns},
                      {"local_local", json_of(layer.local_local)},
                      {"local_content", json_of(layer.local_content)},
                      {"content_content", json_of(layer.content_content)},
                      {"reads_nothing", layer.reads_nothing},
                      {"matrix", matrix}});
  }
  std::cout << nlohmann::ordered_json{{"model", run.model_path.string()},
                                      {"data", run.data_path.string()},
                                      {"split", options.common.model.split},
                                      {"sequences", result.sequences},
                                      {"sequence_length", result.length},
                                      {"queries", result.queries},
                                      {"draws", options.draws},
                                      {"seed", options.common.seed},
                                      {"validity", run.validity},
                                      {"data_label", run.data_label},
                                      {"upper_bound", std::numbers::ln2},
                                      {"layers", layers},
                                      {"written", options.common.paths}}
            << "\n";
}

}  // namespace

int run_analyze_jsd(const JsdOptions& options, const ProgramOptions& program) {
  // Wrong names first: of several files either all are written or none.
  for (const std::string& path : options.common.paths) figure_format(path);
  ProbedRun run = open_probed_run(options.common, program);
  TrainingDisplay display(program.quiet);
  const HeadDivergence result = head_divergence(
      *run.model, run.tokens,
      {.draws = options.draws,
       .queries = options.common.queries,
       .seed = options.common.seed,
       .precision = run.precision,
       .progress = [&](std::int64_t done, std::int64_t all) { display.progress("sequence", done, all); }});
  display.finish();
  for (const std::string& path : options.common.paths)
    write_matrix_figure(divergence_figure(result, "How differently heads attend: " + run_title(run)), path);
  if (options.common.json) {
    print_json(options, run, result);
    return kDone;
  }
  print_table(options, run, result);
  for (const std::string& path : options.common.paths) print_pairs({{"figure", path}}, 11);
  return kDone;
}

}  // namespace routing
