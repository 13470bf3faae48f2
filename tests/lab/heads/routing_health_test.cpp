// What a log says of routing, the verdict on it, members counted on tokens, and the figure of all that.
#include "lab/heads/routing_health.h"

#include "lab/figures/curve_stretches.h"
#include "lab/heads/head_health.h"
#include "lab/heads/health_figure.h"
#include "routing/core/error.h"
#include "routing/model/transformer.h"
#include "support/figure_files.h"
#include "support/message_of.h"
#include "support/small_experiment.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>

namespace routing::routing_health_test {
namespace {

class RoutingHealth : public testing::Test {
 protected:
  HealthHistory history_of(const std::string& lines) const {
    std::ofstream(folder_ / "metrics.jsonl") << lines;
    return read_health_history(folder_ / "metrics.jsonl");
  }

  TemporaryFolder folder_;
};

const HealthSeries& series(const std::vector<HealthSeries>& all, const std::string& key) {
  return all[health_measure(key)];
}

TEST_F(RoutingHealth, ReadsTrainingAndEvaluationByStepAndKeepsGaps) {
  const HealthHistory history = history_of(
      "{\"step\":10,\"train_loss_nats\":5.0,\"routing_tau_drift\":0.5,\"routing_dead_centroids\":3.0}\n"
      "{\"step\":20,\"routing_tau_drift\":null}\n"
      "{\"step\":20,\"eval_loss_nats\":4.0,\"eval_routing_dead_centroids\":2.0,\"eval_routing_tau_drift\":0.0}\n"
      "{\"step\":30,\"routing_tau_drift\":0.25,\"routing_dead_centroids\":1.0}\n");
  EXPECT_EQ(series(history.training, "tau_drift").steps, (std::vector<double>{10, 20, 30}));
  const std::vector<double>& drift = series(history.training, "tau_drift").values;
  ASSERT_EQ(drift.size(), 3U);
  EXPECT_EQ(drift[0], 0.5);
  EXPECT_TRUE(std::isnan(drift[1]));
  EXPECT_EQ(drift[2], 0.25);
  EXPECT_EQ(series(history.training, "dead_centroids").steps, (std::vector<double>{10, 30}));
  EXPECT_EQ(series(history.evaluation, "dead_centroids").values, (std::vector<double>{2}));
  EXPECT_EQ(history.latest("dead_centroids"), 2.0) << "evaluation sees the most tokens";
  EXPECT_EQ(history.latest("tau_drift"), 0.25) << "evaluation moves nothing";
  EXPECT_TRUE(std::isnan(history.latest("memberships")));
  EXPECT_FALSE(history.empty());
  const std::vector<std::string> missing = history.missing();
  EXPECT_EQ(missing.size(), 2 * health_measures().size() - 4) << "two of training and two of evaluation are there";
  EXPECT_EQ(std::count(missing.begin(), missing.end(), "routing_memberships"), 1);
  EXPECT_EQ(std::count(missing.begin(), missing.end(), "routing_tau_drift"), 0);
  EXPECT_TRUE(history_of("{\"step\":10,\"train_loss_nats\":5.0}\n").empty());
  EXPECT_THROW(health_measure("occupancy"), InputError);
}

TEST_F(RoutingHealth, RecentIsTheMiddleOfTheLastTenth) {
  HealthSeries series;
  EXPECT_TRUE(std::isnan(series.recent()));
  for (int i = 0; i < 27; ++i) series.values.push_back(100.0);
  series.values.insert(series.values.end(), {1.0, 7.0, 2.0});
  EXPECT_EQ(series.recent(), 2.0);
  series.values.push_back(std::nan(""));
  EXPECT_EQ(series.recent(), 2.0) << "what is not finite does not count";
}

std::string healthy_line(const std::map<std::string, double>& changed) {
  std::map<std::string, double> values{
      {"occupancy_entropy_min", 0.95}, {"choice_entropy_min", 0.92}, {"dead_centroids", 0.0}, {"tau_drift", 0.02}};
  for (const auto& [key, value] : changed) values[key] = value;
  std::string line = "{\"step\":1";
  for (const auto& [key, value] : values) line += ",\"routing_" + key + "\":" + std::to_string(value);
  return line + "}\n";
}

TEST_F(RoutingHealth, TheVerdictNamesWhatIsBeyondItsLimit) {
  EXPECT_EQ(judge_history(history_of(healthy_line({})), 16).text(), "healthy");
  const HealthVerdict dead = judge_history(history_of(healthy_line({{"dead_centroids", 3.0}})), 16);
  EXPECT_EQ(dead.text(), "unhealthy: 3 dead centroids, more than 0");
  const HealthVerdict collapsed = judge_history(history_of(healthy_line({{"occupancy_entropy_min", 0.4}})), 16);
  EXPECT_EQ(collapsed.text(), "unhealthy: collapsed: occupancy entropy, worst head is 0.400, below 0.50");
  const HealthVerdict uneven = judge_history(history_of(healthy_line({{"choice_entropy_min", 0.7}})), 16);
  EXPECT_TRUE(uneven.healthy());
  EXPECT_EQ(uneven.text(), "healthy; uneven: choice entropy, worst head is 0.700, below 0.90");
  // Half of 1 / 16 is 0.03125, half of 1 / 32 is 0.015625.
  EXPECT_TRUE(judge_history(history_of(healthy_line({{"tau_drift", 0.031}})), 16).healthy());
  EXPECT_EQ(judge_history(history_of(healthy_line({{"tau_drift", 0.02}})), 32).text(),
            "unhealthy: still drifting: thresholds move by 0.0200 deviations per step, more than 0.0156");
  const HealthVerdict old = judge_history(history_of("{\"step\":1,\"routing_dead_centroids\":0.0}\n"), 16);
  EXPECT_EQ(old.text(),
            "healthy; occupancy_entropy_min was not logged; choice_entropy_min was not logged; "
            "tau_drift was not logged");
}

TEST(HeadHealth, EntropyDeadAndExtremesByHand) {
  const HeadHealth head{.members = {30, 10, 0, 40}, .tokens = 80, .dead_share = 0.5};
  EXPECT_EQ(head.memberships(), 80);
  EXPECT_EQ(head.smallest(), 0);
  EXPECT_EQ(head.largest(), 40);
  EXPECT_EQ(head.dead(), 1) << "10 is exactly half of a fair share of 20";
  // Shares 3/8, 1/8 and 1/2.
  const double entropy = -(0.375 * std::log(0.375) + 0.125 * std::log(0.125) + 0.5 * std::log(0.5));
  EXPECT_NEAR(head.entropy(), entropy / std::log(4.0), 1e-15);
  EXPECT_EQ((HeadHealth{.members = {5, 5}}).entropy(), 1.0);
  EXPECT_EQ((HeadHealth{.members = {0, 0}}).entropy(), 0.0);
  EXPECT_NEAR((HeadHealth{.members = {5, 5, 5, 5}, .moving = {30, 10, 0, 40}}).moving_entropy(),
              entropy / std::log(4.0), 1e-15);
}

// Two independent counts: the plans' lists here, the selection's own totals there; and plain loops over dense masks.
TEST(HeadHealth, CountsOnTokensAreThoseOfTheSelectionAndOfDenseMasks) {
  for (const ContentCase& content : content_cases()) {
    Transformer model(content.config, at::kFloat);
    model->eval();
    const at::Tensor tokens = random_tokens(1, 70, 256, 3);
    std::vector<std::int32_t> ids;
    for (std::int64_t i = 0; i < 70; ++i) ids.push_back(static_cast<std::int32_t>(tokens[0][i].item<std::int64_t>()));
    const LikelihoodOptions options{.sequence_length = 32, .batch_size = 2};
    const std::vector<HeadHealth> heads = head_health_of_tokens(*model, TokenView(ids), options);
    if (content.config.attention.content != PatternKind::routing) {
      EXPECT_TRUE(heads.empty()) << content.name;
      continue;
    }
    const std::vector<LayerStatistics> said = token_likelihood(*model, TokenView(ids), options).routing;
    ASSERT_EQ(heads.size(), 4U) << "two layers of two routed heads";
    ASSERT_EQ(said.size(), 2U);
    for (std::size_t i = 0; i < heads.size(); ++i) {
      const RoutingStatistics& statistics = said[i / 2].statistics;
      EXPECT_EQ(heads[i].attention, "layer " + std::to_string(i / 2));
      EXPECT_EQ(heads[i].head, 2 + static_cast<std::int64_t>(i % 2)) << "local heads come first";
      EXPECT_EQ(heads[i].tokens, 70);
      EXPECT_NEAR(heads[i].entropy(), statistics.occupancy_entropy[i % 2], 1e-12) << content.name;
      EXPECT_NEAR(heads[i].smallest() / heads[i].memberships(), statistics.occupancy_min[i % 2], 1e-12);
      EXPECT_NEAR(heads[i].largest() / heads[i].memberships(), statistics.occupancy_max[i % 2], 1e-12);
      EXPECT_EQ(heads[i].dead(), statistics.dead_centroids[i % 2]);
      EXPECT_NEAR(heads[i].fallback / heads[i].tokens, statistics.fallback_fraction[i % 2], 1e-12) << content.name;
      EXPECT_NEAR(heads[i].moving_entropy(), statistics.moving_entropy[i % 2], 1e-12) << content.name;
      EXPECT_TRUE(std::isnan(heads[i].mean_largest_weight)) << "nobody looked";
    }
    const RoutingStatistics& first = said[0].statistics;
    EXPECT_NEAR((heads[0].unrouted + heads[1].unrouted) / 140.0, first.unrouted_fraction, 1e-12) << content.name;
    EXPECT_NEAR((heads[0].overlapping + heads[1].overlapping) / 140.0, first.overlap_fraction, 1e-12) << content.name;
    // The last window by plain loops: a query is a member of a group in which it may see itself.
    const std::vector<HeadHealth> last =
        head_health_of_tokens(*model, TokenView(ids), {.sequence_length = 32, .batch_size = 1, .limit_tokens = 32});
    const Plan& plan = model->states()[1].self.plans[1];
    const auto* order = plan.query_order.data_ptr<std::int32_t>();
    for (std::int64_t head = 0; head < 2; ++head) {
      for (std::int64_t cluster = 0; cluster < 4; ++cluster) {
        const GroupRange range = group_range(plan, head * 4 + cluster);
        double members = 0.0;
        for (std::int64_t position = 0; position < 32; ++position) {
          for (std::int64_t place = range.q_begin; place < range.q_end; ++place) members += order[place] == position;
        }
        EXPECT_EQ(last[static_cast<std::size_t>(2 + head)].members[static_cast<std::size_t>(cluster)], members);
      }
    }
  }
}

// By the rows of a probe, over all queries.
TEST(HeadHealth, LargestWeightsAreThoseOfTheRowsOfAttention) {
  Transformer model(small_experiment(), at::kFloat);
  model->train();
  const at::Tensor tokens = random_tokens(2, 32, 256, 5);
  std::vector<std::int32_t> ids(64, 7);
  std::vector<HeadHealth> heads =
      head_health_of_tokens(*model, TokenView(ids), {.sequence_length = 32, .batch_size = 1});
  add_largest_weights(*model, tokens, 0, heads);
  EXPECT_TRUE(model->is_training()) << "as it was";
  ASSERT_EQ(heads.size(), 4U);
  model->eval();
  for (std::size_t i = 0; i < heads.size(); ++i) {
    double sum = 0.0;
    double rows = 0.0;
    for (std::int64_t sequence = 0; sequence < 2; ++sequence) {
      const auto probes = model->probe(tokens.narrow(0, sequence, 1), {});
      const GroupProbe& routed = probes[i / 2].back();
      ASSERT_EQ(routed.pattern_name, "routing");
      for (std::int64_t query = 0; query < 32; ++query) {
        const AttentionRow row = attention_row(routed, 0, static_cast<std::int64_t>(i % 2), query);
        double largest = 0.0;
        for (const double weight : row.weights) largest = std::max(largest, weight);
        sum += largest;
        rows += row.weights.empty() ? 0.0 : 1.0;
      }
    }
    EXPECT_NEAR(heads[i].mean_largest_weight, sum / rows, 1e-12) << i;
    EXPECT_GT(heads[i].mean_largest_weight, 1.0 / 32.0);
    EXPECT_LE(heads[i].mean_largest_weight, 1.0);
  }
  heads.pop_back();
  EXPECT_THROW(add_largest_weights(*model, tokens, 0, heads), InputError);
}

TEST(HeadHealth, BuffersAreTheCountsOfTheCentroids) {
  Transformer model(small_experiment(), at::kFloat);
  model->train();
  model->loss(random_tokens(2, 32, 256, 1), {});
  model->update_centroids();
  const std::vector<HeadHealth> heads = head_health_of_buffers(*model);
  ASSERT_EQ(heads.size(), 4U);
  const at::Tensor counts = model->block(1)->attention()->centroids(1)->counts();
  for (std::int64_t head = 0; head < 2; ++head) {
    for (std::int64_t cluster = 0; cluster < 4; ++cluster) {
      EXPECT_EQ(heads[static_cast<std::size_t>(2 + head)].members[static_cast<std::size_t>(cluster)],
                static_cast<double>(counts[head][cluster].item<float>()));
    }
  }
  EXPECT_EQ(heads[3].attention, "layer 1");
  EXPECT_EQ(heads[3].head, 3);
  EXPECT_NE(heads[2].members, heads[3].members);
  EXPECT_TRUE(head_health_of_buffers(*Transformer(small_experiment("local"), at::kFloat)).empty());
}

HealthFigure small_figure() {
  HealthFigure figure{.title = "Health & <more>", .runs = {{.name = "first", .clusters = 4}}};
  HealthFigure::Run& run = figure.runs[0];
  run.history.training.resize(health_measures().size());
  run.history.evaluation.resize(health_measures().size());
  run.history.training[health_measure("occupancy_entropy_min")] = {{0, 50, 100}, {0.6, 0.8, 0.9}};
  run.history.training[health_measure("tau_drift")] = {{0, 50, 100}, {0.2, 0.1, 0.05}};
  run.history.evaluation[health_measure("tau_drift")] = {{100}, {0.0}};
  run.heads = {{.attention = "layer 0", .head = 2, .members = {10, 20, 0, 40}, .tokens = 60},
               {.attention = "layer 1", .head = 2, .members = {5, 5, 5, 5}, .tokens = 20}};
  run.heads_title = "members";
  return figure;
}

TEST_F(RoutingHealth, FigureShowsMeasuresThatAreThereAndBarsByMembers) {
  const HealthFigure figure = small_figure();
  const HealthLayout layout = health_layout(figure);
  ASSERT_EQ(layout.charts.size(), 2U);
  EXPECT_EQ(layout.charts[1].curves.curves.size(), 1U) << "the drift of an evaluation is not a number";
  EXPECT_EQ(layout.charts[1].curves.references.at(0).y, 0.125) << "half of 1 / 4";
  ASSERT_EQ(layout.bars.size(), 2U);
  EXPECT_EQ(layout.bars[0].most, 40.0);
  EXPECT_EQ(layout.bars[1].most, 40.0) << "one scale for all heads";
  EXPECT_GT(layout.bars[1].top, layout.bars[0].top + layout.bars[0].height) << "an attention begins a row";
  write_health_figure(figure, folder_ / "health.png");
  const FigureImage image(folder_ / "health.png");
  ASSERT_TRUE(image.readable());
  EXPECT_EQ(image.width(), static_cast<int>(layout.width * kPixelsPerUnit));
  const HealthLayout::Bars& bars = layout.bars[0];
  const double step = bars.width / 4.0;
  const auto bar_at = [&](int cluster, double share) {
    return same_colour(image.at(bars.left + step * (cluster + 0.3), bars.top + bars.height * (1.0 - share)),
                       group_colour(0));
  };
  EXPECT_TRUE(bar_at(0, 0.2) && !bar_at(0, 0.3)) << "10 of 40";
  EXPECT_TRUE(bar_at(1, 0.36) && !bar_at(1, 0.55)) << "20 of 40";
  EXPECT_FALSE(bar_at(2, 0.05));
  EXPECT_TRUE(bar_at(3, 0.95));
  const CurvesLayout& plot = layout.charts[0].plot;
  EXPECT_TRUE(
      image.holds(group_colour(0), plot.x_of(50) - 2, plot.y_of(0.8) - 2, plot.x_of(50) + 2, plot.y_of(0.8) + 2));
  write_health_figure(figure, folder_ / "health.svg");
  EXPECT_NE(text_of(folder_ / "health.svg").find("<svg"), std::string::npos);
  EXPECT_THROW(write_health_figure(figure, folder_ / "health.jpg"), ConfigError);
  EXPECT_NE(message_of<InputError>([] { health_layout({.title = "empty", .runs = {{.name = "a"}}}); }).find("empty"),
            std::string::npos);
}

// Spikes, cliffs and many values: what a real run logs.
TEST_F(RoutingHealth, LinesOfTheFigureStayInsideTheirAxes) {
  HealthFigure figure{.title = "spikes", .runs = {{.name = "first", .clusters = 4}}};
  HealthHistory& history = figure.runs[0].history;
  history.training.resize(health_measures().size());
  history.evaluation.resize(health_measures().size());
  for (std::size_t measure = 0; measure < health_measures().size(); ++measure) {
    for (int step = 0; step < 200; ++step) {
      history.training[measure].steps.push_back(step);
      history.training[measure].values.push_back(step < 4 || step == 90 ? 1.0 : 0.01);
    }
  }
  history.evaluation[0] = {{0, 100, 199}, {1.0, 0.0, 0.5}};
  const HealthLayout layout = health_layout(figure);
  ASSERT_EQ(layout.charts.size(), health_measures().size());
  write_health_figure(figure, folder_ / "health.png");
  const FigureImage image(folder_ / "health.png");
  for (const HealthLayout::Chart& chart : layout.charts) {
    const CurvesLayout& plot = chart.plot;
    const std::string& name = health_measures()[chart.measure].name;
    for (const Curve& curve : chart.curves.curves) {
      for (const CurveStretch& stretch : stretches_of(curve)) {
        CurveStretch drawn = main_line(curve, stretch, plot.y);
        drawn.insert(drawn.end(), stretch.begin(), stretch.end());
        for (const CurvePoint& point : drawn) {
          EXPECT_GE(plot.y_of(point.y), plot.top - 1e-9) << name;
          EXPECT_LE(plot.y_of(point.y), plot.bottom + 1e-9) << name;
        }
      }
    }
    EXPECT_DOUBLE_EQ(plot.y_ticks.front().value, plot.y.low) << name;
    EXPECT_DOUBLE_EQ(plot.y_ticks.back().value, plot.y.high) << name;
    // Around the plot there are only grey letters.
    const auto coloured = [&](double left, double top, double right, double bottom) {
      for (double y = top; y < bottom; y += 0.5) {
        for (double x = left; x < right; x += 0.5) {
          const Colour colour = image.at(x, y);
          if (colour.blue - colour.red > 0.05) return true;
        }
      }
      return false;
    };
    EXPECT_FALSE(coloured(plot.left - 30.0, plot.top - 12.0, plot.right + 8.0, plot.top - 4.0)) << name;
    EXPECT_FALSE(coloured(plot.left - 30.0, plot.bottom + 4.0, plot.right + 8.0, plot.bottom + 32.0)) << name;
    EXPECT_FALSE(coloured(plot.left - 30.0, plot.top, plot.left - 4.0, plot.bottom)) << name;
  }
}

TEST_F(RoutingHealth, NamesOfManyRunsFitTheSheet) {
  HealthFigure figure = small_figure();
  for (int i = 0; i < 12; ++i) {
    figure.runs.push_back(figure.runs[0]);
    figure.runs.back().name = "a run with a rather long name, number " + std::to_string(i);
  }
  write_health_figure(figure, folder_ / "many.png");
  const FigureImage image(folder_ / "many.png");
  const double width = health_layout(figure).width;
  EXPECT_FALSE(image.holds(mix(group_colour(12), kInk, 0.15), width - 20.0, 40.0, width - 1.0, 66.0));
  EXPECT_TRUE(image.readable());
}

}  // namespace
}  // namespace routing::routing_health_test
