#include "analyze/head_analysis.h"
#include "lab/heads/attention_coverage.h"
#include "lab/heads/head_shares_figure.h"
#include "shell/engine.h"
#include "shell/output.h"
#include "train/training_display.h"

#include <nlohmann/json.hpp>

#include <array>
#include <iostream>
#include <string>
#include <vector>

namespace routing {
namespace {

std::string three(double plan, double recent, double random) {
  return fixed_digits(plan, 3) + " " + fixed_digits(recent, 3) + " " + fixed_digits(random, 3);
}

void print_line(const std::vector<std::string>& cells) {
  static constexpr std::array<std::size_t, 4> kWidths{7, 18, 8, 10};
  std::string text;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    std::string cell = cells[i];
    cell.resize(std::max(cell.size() + 1, i < kWidths.size() ? kWidths[i] : 20), ' ');
    text += cell;
  }
  std::cout << text.substr(0, text.find_last_not_of(' ') + 1) << "\n";
}

// "local x4", the patterns of the heads of one kind.
std::string kind_text(const std::vector<HeadCoverage>& layer, HeadKind kind) {
  std::string name;
  int heads = 0;
  for (const HeadCoverage& head : layer) {
    if (ProbedHead::head_kind(head.pattern) != kind) continue;
    name = name.empty() || name == head.pattern ? head.pattern : "content";
    ++heads;
  }
  return std::to_string(heads) + " " + name;
}

void print_table(const HeadAnalysisOptions& options, const ProbedRun& run, const CoverageReport& report) {
  std::cout << "What heads keep of dense attention with their own queries and keys. Three shares each: the head's "
               "plan,\nas many keys just before the query, as many keys at random\n\n";
  std::vector<std::string> names{"layer", "heads", "keys", "unrouted", "softmax mass"};
  for (const std::int64_t top : kCoverageTops) names.push_back("top " + std::to_string(top) + " products");
  print_line(names);
  for (std::size_t layer = 0; layer < report.layers.size(); ++layer) {
    for (const HeadKind kind : {HeadKind::local, HeadKind::content}) {
      const std::optional<Coverage> mean = mean_coverage(report.layers[layer], kind);
      if (!mean) continue;
      std::vector<std::string> cells{std::to_string(layer), kind_text(report.layers[layer], kind),
                                     fixed_digits(mean->keys, 1), fixed_digits(100.0 * mean->reads_nothing, 1) + " %",
                                     three(mean->plan.mass, mean->recent.mass, mean->random)};
      for (std::size_t i = 0; i < kCoverageTops.size(); ++i) {
        cells.push_back(three(mean->plan.top[i], mean->recent.top[i], mean->random));
      }
      print_line(cells);
    }
  }
  std::cout << "\n";
  print_pairs(
      {{"keys", "distinct earlier ones that a query reads, on average; the query itself is left out of everything"},
       {"unrouted", "share of queries that read nothing; their shares are 0 and count"},
       {"logits",
        "dense ones have true offsets and recency where the head has them, but no ranks; products are "
        "of queries and keys alone"},
       {"data", describe_sequences(options, run, report.queries)},
       {"model", describe_model(run)}},
      11);
}

nlohmann::ordered_json json_of(const PlanCoverage& coverage) {
  nlohmann::ordered_json object{{"mass", coverage.mass}};
  for (std::size_t i = 0; i < kCoverageTops.size(); ++i) {
    object["top_" + std::to_string(kCoverageTops[i])] = coverage.top[i];
  }
  return object;
}

void print_json(const HeadAnalysisOptions& options, const ProbedRun& run, const CoverageReport& report) {
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  for (const auto& layer : report.layers) {
    nlohmann::ordered_json heads = nlohmann::ordered_json::array();
    for (const HeadCoverage& head : layer) {
      heads.push_back({{"pattern", head.pattern},
                       {"keys", head.coverage.keys},
                       {"reads_nothing", head.coverage.reads_nothing},
                       {"plan", json_of(head.coverage.plan)},
                       {"recent", json_of(head.coverage.recent)},
                       {"random", head.coverage.random}});
    }
    layers.push_back({{"heads", heads}});
  }
  std::cout << nlohmann::ordered_json{{"model", run.model_path.string()},
                                      {"data", run.data_path.string()},
                                      {"split", options.model.split},
                                      {"sequences", report.sequences},
                                      {"sequence_length", report.length},
                                      {"queries", report.queries},
                                      {"seed", options.seed},
                                      {"validity", run.validity},
                                      {"data_label", run.data_label},
                                      {"layers", layers},
                                      {"written", options.paths}}
            << "\n";
}

HeadSharesFigure figure_of(const ProbedRun& run, const CoverageReport& report) {
  HeadSharesFigure figure{.title = "What heads keep of dense attention: " + run_title(run),
                          .dot_name = "its plan",
                          .ring_name = "as many recent keys",
                          .dash_name = "as many random keys",
                          .kinds = {},
                          .panels = {{.title = "share of the softmax mass", .layers = {}}}};
  for (const std::int64_t top : kCoverageTops) {
    figure.panels.push_back({.title = top == 1 ? "share of queries whose largest inner product is held"
                                               : "share of the " + std::to_string(top) + " largest inner products",
                             .layers = {}});
  }
  for (const auto& layer : report.layers) {
    figure.kinds.emplace_back();
    for (HeadSharesFigure::Panel& panel : figure.panels) panel.layers.emplace_back();
    for (const HeadCoverage& head : layer) {
      const Coverage& coverage = head.coverage;
      figure.kinds.back().push_back(head.pattern);
      figure.panels[0].layers.back().push_back({coverage.plan.mass, coverage.recent.mass, coverage.random});
      for (std::size_t i = 0; i < kCoverageTops.size(); ++i) {
        figure.panels[i + 1].layers.back().push_back({coverage.plan.top[i], coverage.recent.top[i], coverage.random});
      }
    }
  }
  return figure;
}

}  // namespace

int run_analyze_recall(const HeadAnalysisOptions& options, const ProgramOptions& program) {
  // Wrong names first: of several files either all are written or none.
  for (const std::string& path : options.paths) figure_format(path);
  ProbedRun run = open_probed_run(options, program);
  TrainingDisplay display(program.quiet);
  const CoverageReport report = attention_coverage(
      *run.model, run.tokens,
      {.queries = options.queries,
       .seed = options.seed,
       .precision = run.precision,
       .progress = [&](std::int64_t done, std::int64_t all) { display.progress("sequence", done, all); }});
  display.finish();
  for (const std::string& path : options.paths) write_head_shares_figure(figure_of(run, report), path);
  if (options.json) {
    print_json(options, run, report);
    return kDone;
  }
  print_table(options, run, report);
  for (const std::string& path : options.paths) print_pairs({{"figure", path}}, 11);
  return kDone;
}

}  // namespace routing
