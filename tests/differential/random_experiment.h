// Configurations drawn at random: small, valid, and mixed in ways that nobody has thought of.
#pragma once

#include "differential/seeds.h"
#include "routing/config/experiment.h"
#include "routing/config/keys.h"
#include "routing/core/error.h"
#include "support/small_experiment.h"

#include <string>
#include <utility>
#include <vector>

namespace routing::differential {

struct RandomExperiment {
  ExperimentConfig config;
  std::string settings;  // what was changed, as --set would say it
};

// A setting that makes no valid experiment of what is there so far is left out.
inline void try_settings(RandomExperiment& experiment,
                         const std::vector<std::pair<std::string, std::string>>& settings) {
  ExperimentConfig changed = experiment.config;
  try {
    for (const auto& [key, value] : settings) set_key(changed, key, value);
    validate(changed);
  } catch (const ConfigError&) {
    return;
  }
  experiment.config = std::move(changed);
  for (const auto& [key, value] : settings) experiment.settings += " " + key + "=" + value;
}

inline RandomExperiment random_experiment(std::uint64_t seed) {
  Draws draws(seed, "differential experiment");
  const ContentCase base = draws.one_of(content_cases());
  RandomExperiment experiment{base.config, base.name + ":"};
  const auto maybe = [&](double probability, const std::string& key, const std::vector<std::string>& values) {
    const std::string value = draws.one_of(values);
    if (draws.chance(probability)) try_settings(experiment, {{key, value}});
  };
  const auto number = [&](std::int64_t first, std::int64_t last) { return std::to_string(draws.between(first, last)); };
  maybe(1.0, "model.vocab_size", {"1", "2", "37", "64", "256"});
  maybe(1.0, "model.layers", {"1", "2", "3"});
  maybe(1.0, "model.width", {"8", "16", "20", "33", "36", "64"});
  maybe(0.5, "model.feedforward_width", {"1", "17", "48", "100"});
  maybe(0.4, "model.head_dim", {"1", "4", "5", "17", "33"});
  maybe(0.5, "model.norm", {"pre", "post"});
  maybe(0.6, "model.feedforward", {"relu", "geglu", "gelu"});
  maybe(0.4, "model.positions", {"sinusoidal", "learned"});
  maybe(0.4, "model.tied_output", {"true"});
  maybe(0.3, "model.embedding_width", {"8", "12"});
  maybe(0.3, "model.start_symbol", {"own", "zero"});
  maybe(0.3, "model.residual_dropout", {"0.1", "0.5"});
  maybe(0.3, "model.attention_dropout", {"0.1", "0.5"});
  maybe(0.3, "model.input_dropout", {"0.1"});
  maybe(0.3, "model.feedforward_dropout", {"0.2"});
  maybe(0.3, "model.checkpoint_activations", {"true"});
  maybe(0.2, "model.bands", {"3,17", "8,32"});
  maybe(0.6, "attention.heads", {"1", "2", "3", "4", "6"});
  maybe(0.5, "attention.content_heads", {"0", "1", "2", "3"});
  maybe(0.3, "attention.content_layers", {"top 1", "odd", "even", "1"});
  maybe(0.3, "attention.add_content", {"true"});
  maybe(0.5, "train.batch_size", {"1", "3", "4"});
  maybe(0.9, "train.sequence_length", {number(1, 12), number(13, 70), number(60, 70), number(70, 200)});
  maybe(0.3, "train.accumulation", {"2"});
  maybe(0.5, "train.precision", {"bf16"});
  maybe(0.5, "train.optimizer", {"adamw", "adafactor", "adafactorw"});
  maybe(0.3, "train.clip", {"0", "0.1"});
  maybe(0.5, "local.window", {"1", "2", number(3, 90)});
  maybe(0.3, "local.form", {"block"});
  maybe(0.3, "local.flange", {"0", "2"});
  for (const char* section : {"local", "full", "strided", "lsh", "routing", "span", "fixed", "local2d", "random"}) {
    const std::string at = std::string(section) + ".";
    maybe(0.2, at + "shared_query_key", {"true", "false"});
    maybe(0.2, at + "key_shift", {"1", "0"});
    maybe(0.2, at + "scale", {"1", "0.3"});
    maybe(0.2, at + "learned_scale", {"true", "false"});
    maybe(0.2, at + "self", {"allowed", "only_if_alone", "only_if_alone_in_group"});
    maybe(0.2, at + "merge", {"mean", "lse"});
    maybe(0.2, at + "relative", {"none", "true_offset", "rank"});
    maybe(0.2, at + "max_relative", {"1", "9", "70"});
    maybe(0.2, at + "recency", {"true", "false"});
    maybe(0.2, at + "rotary", {"none", "keys", "values"});
  }
  maybe(0.4, "routing.clusters", {"1", "2", "7"});
  maybe(0.4, "routing.window", {"1", "3", number(4, 80)});
  maybe(0.3, "routing.max_memberships", {"1", "2", "5"});
  maybe(0.3, "routing.target_share", {"1", "2.5"});
  maybe(0.3, "routing.norm", {"unit"});
  maybe(0.3, "lsh.buckets", {"2", "6"});
  maybe(0.3, "lsh.rounds", {"2", "3"});
  maybe(0.3, "lsh.window", {"1", "40"});
  maybe(0.3, "strided.stride", {"1", "7"});
  return experiment;
}

}  // namespace routing::differential
