#include "analyze/analyze_options.h"
#include "inputs/run_data.h"
#include "inputs/run_model.h"
#include "lab/heads/head_health.h"
#include "lab/heads/health_figure.h"
#include "lab/heads/routing_health.h"
#include "lab/heads/spread_sequences.h"
#include "routing/core/error.h"
#include "routing/model/weights.h"
#include "routing/training/run_directory.h"
#include "shell/engine.h"
#include "shell/output.h"
#include "train/training_display.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace routing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Rows of attention that are looked at: means need no more.
constexpr std::int64_t kProbedSequences = 4;
constexpr std::int64_t kProbedQueries = 256;

struct RunHealth {
  std::string name;
  std::int64_t clusters = 0;
  HealthHistory history = {};
  std::vector<HeadHealth> heads = {};
  HealthVerdict verdict = {};
};

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

// Heads by an evaluation, if data were asked for; else what the checkpoint remembers, if there is one.
void look_at_heads(const HealthOptions& options, bool quiet, RunHealth& health) {
  RunDataOptions model = options.model;
  model.run = health.name;
  if (options.evaluate) {
    RunModel run = load_run_model(model, "health on data");
    const std::unique_ptr<Dataset> data = open_run_data(model, run, quiet);
    const ExperimentConfig& config = run.model->config();
    const TokenView tokens = data->part(model.split).tokens;
    const std::int64_t limit = options.limit_tokens > 0 ? options.limit_tokens : config.train.eval_tokens;
    TrainingDisplay display(quiet);
    health.heads = head_health_of_tokens(
        *run.model, tokens,
        {.sequence_length = config.train.sequence_length,
         .batch_size = config.eval.batch_size,
         .limit_tokens = std::min(limit, tokens.size()),
         .record_length = data->facts().record_length(),
         .precision = chosen_precision(model.precision, config),
         .progress = [&](std::int64_t done, std::int64_t all) { display.evaluation_progress(done, all); }});
    display.finish();
    add_largest_weights(*run.model,
                        spread_sequences(tokens, {.length = std::min(config.train.sequence_length, tokens.size()),
                                                  .record_length = data->facts().record_length(),
                                                  .count = kProbedSequences}),
                        kProbedQueries, health.heads);
    return;
  }
  if (!RunDirectory(health.name).newest_checkpoint()) return;
  health.heads = head_health_of_buffers(*load_sequence_model(model_file(health.name, model.checkpoint)));
}

// Heads whose clusters an evaluation found dead or collapsed. Moving averages say too little for a verdict.
void judge_heads(const std::vector<HeadHealth>& heads, HealthVerdict& verdict) {
  const HealthLimits limits;
  for (const HeadHealth& head : heads) {
    const std::string name = head.attention + " head " + std::to_string(head.head);
    if (head.dead() > 0) {
      verdict.problems.push_back(name + " has " + std::to_string(head.dead()) + " dead of " +
                                 std::to_string(head.members.size()) + " clusters");
    }
    if (head.entropy() < limits.collapsed) {
      verdict.problems.push_back(name + " collapsed: entropy " + fixed_digits(head.entropy(), 3) + ", below " +
                                 fixed_digits(limits.collapsed, 2));
    }
  }
}

std::int64_t clusters_of(const ExperimentConfig& config, const std::string& run) {
  std::int64_t clusters = 0;
  const auto look = [&](const AttentionConfig& attention) {
    for (const HeadGroupConfig& group : attention.head_groups) {
      if (const auto* pattern = std::get_if<RoutingPattern>(&group.pattern)) clusters = pattern->clusters;
    }
  };
  for (std::int64_t layer = 0; layer < config.model.layers; ++layer) look(attention_of_layer(config, layer));
  for (std::int64_t layer = 0; layer < config.model.encoder_layers; ++layer)
    look(attention_of_encoder_layer(config, layer));
  for (std::int64_t layer = 0; config.model.encoder_layers > 0 && layer < config.model.layers; ++layer) {
    look(cross_attention_of_layer(config, layer));
  }
  require<ConfigError>(clusters > 0, run, ": has no routed heads, so there are no clusters to look at; choose a run ",
                       "with attention.content = routing");
  return clusters;
}

RunHealth health_of(const HealthOptions& options, const std::string& name, bool quiet) {
  const RunDirectory run(name);
  RunHealth health{.name = name};
  health.clusters = clusters_of(run.read_config(), name);
  health.history = read_health_history(run.metrics_file());
  look_at_heads(options, quiet, health);
  require<ConfigError>(!health.history.empty() || !health.heads.empty(), run.metrics_file().string(),
                       ": says nothing of routing yet; train on, at least to the first logged step");
  health.verdict = judge_history(health.history, health.clusters);
  if (options.evaluate) judge_heads(health.heads, health.verdict);
  return health;
}

Json json_of(const HealthSeries& series) {
  Json values = Json::array();
  for (const double value : series.values) values.push_back(number(value));
  return {{"steps", series.steps}, {"values", values}};
}

Json json_of(const RunHealth& health, bool evaluated) {
  Json training = Json::object();
  Json evaluation = Json::object();
  Json latest = Json::object();
  for (std::size_t i = 0; i < health_measures().size(); ++i) {
    const std::string& key = health_measures()[i].key;
    latest[key] = number(health.history.latest(key));
    if (!health.history.training[i].empty()) training[key] = json_of(health.history.training[i]);
    if (!health.history.evaluation[i].empty()) evaluation[key] = json_of(health.history.evaluation[i]);
  }
  Json heads = Json::array();
  for (const HeadHealth& head : health.heads) {
    heads.push_back(
        {{"attention", head.attention}, {"head", head.head}, {"members", head.members}, {"entropy", head.entropy()}});
    if (!evaluated) continue;
    heads.back()["dead"] = head.dead();
    heads.back()["tokens"] = head.tokens;
    heads.back()["unrouted_fraction"] = head.unrouted / head.tokens;
    heads.back()["overlap_fraction"] = head.overlapping / head.tokens;
    heads.back()["memberships"] = head.memberships() / head.tokens;
    heads.back()["fallback_fraction"] = head.fallback / head.tokens;
    heads.back()["moving_entropy"] = head.moving_entropy();
    heads.back()["mean_largest_weight"] = number(head.mean_largest_weight);
  }
  return {{"run", health.name},
          {"clusters", health.clusters},
          {"healthy", health.verdict.healthy()},
          {"problems", health.verdict.problems},
          {"remarks", health.verdict.remarks},
          {"latest", latest},
          {"training", training},
          {"evaluation", evaluation},
          {"not_logged", health.history.missing()},
          {"heads_from", health.heads.empty() ? Json(nullptr) : Json(evaluated ? "evaluation" : "checkpoint")},
          {"heads", heads}};
}

std::string cell(double value) {
  return std::isfinite(value) ? fixed_digits(value, 4) : "-";
}

double last_of(const HealthSeries& series) {
  return series.empty() ? std::nan("") : series.values.back();
}

void print_measures(const RunHealth& health) {
  std::cout << std::left << std::setw(42) << "measure" << std::right << std::setw(12) << "first" << std::setw(12)
            << "recent" << std::setw(12) << "held out"
            << "\n";
  for (std::size_t i = 0; i < health_measures().size(); ++i) {
    const HealthSeries& training = health.history.training[i];
    if (training.empty() && health.history.evaluation[i].empty()) continue;
    const std::string& key = health_measures()[i].key;
    const bool moves = key == "tau_drift" || key == "revived";
    std::cout << std::left << std::setw(42) << health_measures()[i].name << std::right << std::setw(12)
              << cell(training.empty() ? std::nan("") : training.values.front()) << std::setw(12)
              << cell(training.recent()) << std::setw(12) << (moves ? "-" : cell(last_of(health.history.evaluation[i])))
              << "\n";
  }
}

// A row of the table of heads. What a checkpoint remembers are not members, so only an evaluation says who is dead.
void print_head(const HeadHealth& head, bool evaluated) {
  const int digits = evaluated ? 0 : 1;
  std::cout << std::left << std::setw(28) << head.attention << std::right << std::setw(5) << head.head << std::setw(10)
            << fixed_digits(head.entropy(), 3) << std::setw(12) << fixed_digits(head.smallest(), digits)
            << std::setw(12) << fixed_digits(head.largest(), digits);
  if (evaluated) {
    std::cout << std::setw(6) << head.dead() << std::setw(10) << fixed_digits(head.unrouted / head.tokens, 3)
              << std::setw(10) << fixed_digits(head.overlapping / head.tokens, 3) << std::setw(10)
              << fixed_digits(head.memberships() / head.tokens, 3) << std::setw(10)
              << fixed_digits(head.fallback / head.tokens, 3) << std::setw(8) << fixed_digits(head.moving_entropy(), 3)
              << std::setw(8)
              << (std::isfinite(head.mean_largest_weight) ? fixed_digits(head.mean_largest_weight, 3) : "-");
  }
  std::cout << "\n";
}

void print_heads(const RunHealth& health, bool evaluated) {
  if (health.heads.empty()) return;
  std::cout << "\n"
            << (evaluated ? "members of clusters on held-out tokens"
                          : "tokens that moved each centroid in a step, as the checkpoint remembers them")
            << "\n"
            << std::left << std::setw(28) << "attention" << std::right << std::setw(5) << "head" << std::setw(10)
            << "entropy" << std::setw(12) << "smallest" << std::setw(12) << "largest";
  if (evaluated) {
    std::cout << std::setw(6) << "dead" << std::setw(10) << "unrouted" << std::setw(10) << "several" << std::setw(10)
              << "clusters" << std::setw(10) << "fallback" << std::setw(8) << "moving" << std::setw(8) << "weight";
  }
  std::cout << "\n";
  for (const HeadHealth& head : health.heads) print_head(head, evaluated);
}

void print(const RunHealth& health, const HealthOptions& options) {
  std::cout << health.name << ": " << health.verdict.text() << "\n\n";
  print_measures(health);
  std::vector<std::string> missing = health.history.missing();
  if (!missing.empty()) {
    std::cout << "\nnot in metrics.jsonl:";
    for (const std::string& key : missing) std::cout << " " << key;
    std::cout << "\n";
  }
  print_heads(health, options.evaluate);
}

HealthFigure figure_of(const std::vector<RunHealth>& all, bool evaluated) {
  HealthFigure figure{.title = "Health of routing" + (all.size() == 1 ? ": " + all[0].name : ""), .runs = {}};
  for (const RunHealth& health : all) {
    figure.runs.push_back({.name = health.name,
                           .history = health.history,
                           .clusters = health.clusters,
                           .heads = health.heads,
                           .heads_title = health.name +
                                          (evaluated ? ": members of each cluster on held-out tokens"
                                                     : ": tokens that moved each centroid in a step of training") +
                                          ", a bar per cluster; dashed: an even share"});
  }
  return figure;
}

}  // namespace

int run_analyze_health(const HealthOptions& options, const ProgramOptions& program) {
  for (const std::string& path : options.paths) figure_format(path);
  std::vector<RunHealth> all;
  for (const std::string& name : options.runs) all.push_back(health_of(options, name, program.quiet));
  const HealthFigure figure = figure_of(all, options.evaluate);
  for (const std::string& path : options.paths) write_health_figure(figure, path);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (options.json) {
      Json object = json_of(all[i], options.evaluate);
      object["written"] = options.paths;
      std::cout << object << "\n";
    } else {
      if (i > 0) std::cout << "\n";
      print(all[i], options);
    }
  }
  for (const std::string& path : options.paths) {
    if (!options.json) std::cout << path << "\n";
  }
  return kDone;
}

}  // namespace routing
