// Against PyTorch's own optimisers, clipping and schedulers, and against Adafactor in numpy;
// scripts/optimizer_values.py made the values.
#include "routing/optim/gradient_norm.h"
#include "routing/optim/make_optimizer.h"
#include "routing/optim/schedule.h"
#include "test_paths.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <map>
#include <string>

namespace routing::golden_test {
namespace {

using nlohmann::json;

const json& golden() {
  static const json values =
      json::parse(std::ifstream(std::string(ROUTING_SOURCE_DIR) + "/tests/optim/golden/optimizer_values.json"));
  return values;
}

at::Tensor tensor_of(const json& values, at::ScalarType type) {
  if (!values[0].is_array()) return at::tensor(values.get<std::vector<double>>(), at::kDouble).to(type);
  std::vector<at::Tensor> rows;
  for (const json& row : values) rows.push_back(tensor_of(row, type));
  return at::stack(rows);
}

double largest_difference(const at::Tensor& tensor, const json& expected) {
  return (tensor.detach().to(at::kDouble) - tensor_of(expected, at::kDouble)).abs().max().item<double>();
}

// What the file calls a moment, and what the optimiser does.
const std::map<std::string, std::string> kMoments{{"first_moment", "weight.first_moment"},
                                                  {"second_moment", "weight.second_moment"},
                                                  {"row_moment", "weight.row_moment"},
                                                  {"column_moment", "weight.column_moment"},
                                                  {"bias_moment", "bias.second_moment"}};

TrainConfig config_of(const json& test_case) {
  static const std::map<std::string, ScheduleKind> schedules{{"constant", ScheduleKind::constant},
                                                             {"vaswani", ScheduleKind::vaswani},
                                                             {"cosine", ScheduleKind::cosine},
                                                             {"rsqrt", ScheduleKind::rsqrt}};
  TrainConfig config;
  config.optimizer = parse_word<OptimizerKind>(test_case["optimizer"].get<std::string>(), "train.optimizer");
  config.weight_decay = test_case["weight_decay"];
  config.clip = test_case["clip"];
  config.schedule = schedules.at(test_case["schedule"]);
  config.learning_rate = golden()["learning_rate"];
  config.warmup_steps = golden()["warmup_steps"];
  config.decay_steps = golden()["decay_steps"];
  config.final_learning_rate = golden()["final_learning_rate"];
  config.beta1 = golden()["beta1"];
  config.beta2 = golden()["beta2"];
  config.epsilon = golden()["epsilon"];
  config.relative_step = test_case.value("relative_step", true);
  config.update_clip = test_case.value("update_clip", 1.0);
  return config;
}

void expect_golden_run(const json& test_case, at::ScalarType type, double tolerance) {
  SCOPED_TRACE(test_case["optimizer"].get<std::string>() + ", " + test_case["schedule"].get<std::string>());
  const TrainConfig config = config_of(test_case);
  const at::Tensor inputs = tensor_of(golden()["inputs"], type);
  const at::Tensor targets = tensor_of(golden()["targets"], type);
  const at::Tensor weight = tensor_of(golden()["weight"], type).set_requires_grad(true);
  const at::Tensor bias = tensor_of(golden()["bias"], type).set_requires_grad(true);
  const auto optimizer =
      make_optimizer({{.name = "weight", .value = weight}, {.name = "bias", .value = bias, .decay = false}}, config);
  int compared = 0;
  for (const json& expected : test_case["steps"]) {
    optimizer->zero_gradients();
    // Half the loss, and twice the scale: what accumulation does.
    const at::Tensor loss = ((inputs.matmul(weight) + bias).tanh() - targets).square().sum();
    (loss / 2.0).backward();
    const double norm = 2.0 * gradient_norm(optimizer->parameters());
    const double rate = learning_rate(config, optimizer->steps() + 1);
    optimizer->step(rate, 2.0 * clip_scale(norm, config.clip));
    const std::int64_t step = optimizer->steps();
    EXPECT_NEAR(rate, expected["learning_rate"].get<double>(), 1e-14) << step;
    EXPECT_NEAR(loss.item<double>(), expected["loss"].get<double>(), 100.0 * tolerance) << step;
    EXPECT_NEAR(norm, expected["norm"].get<double>(), 100.0 * tolerance) << step;
    if (!expected.contains("weight")) continue;
    EXPECT_LT(largest_difference(weight, expected["weight"]), tolerance) << step;
    EXPECT_LT(largest_difference(bias, expected["bias"]), tolerance) << step;
    ++compared;
  }
  for (const auto& [key, name] : kMoments) {
    if (!test_case.contains(key)) continue;
    EXPECT_LT(largest_difference(optimizer->state().at(name), test_case[key]), 10.0 * tolerance) << name;
    ++compared;
  }
  EXPECT_EQ(compared, test_case.contains("row_moment") ? 4 + 3 : 4 + 2);
}

TEST(OptimizerGolden, DoublesFollowPytorchThroughClippingAndSchedules) {
  ASSERT_EQ(golden()["cases"].size(), 14U);
  for (const json& test_case : golden()["cases"]) expect_golden_run(test_case, at::kDouble, 1e-12);
}

TEST(OptimizerGolden, FloatsFollowPytorchThroughClippingAndSchedules) {
  for (const json& test_case : golden()["cases"]) expect_golden_run(test_case, at::kFloat, 2e-6);
}

}  // namespace
}  // namespace routing::golden_test
