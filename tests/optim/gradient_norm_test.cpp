#include "routing/optim/gradient_norm.h"

#include "routing/core/error.h"
#include "routing/core/parallel.h"
#include "routing/core/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace routing::gradient_norm_test {
namespace {

NamedParameter parameter_with(const std::string& name, const at::Tensor& gradient) {
  NamedParameter parameter{.name = name, .value = at::zeros(gradient.sizes(), gradient.scalar_type())};
  parameter.value.mutable_grad() = gradient;
  return parameter;
}

at::Tensor numbers(const std::vector<double>& values, at::ScalarType type) {
  return at::tensor(values, at::kDouble).to(type);
}

TEST(GradientNorm, HandWorkedOverSeveralParameters) {
  // 1 + 4 + 4 + 16 + 144 = 169; the last parameter has no gradient.
  const std::vector<NamedParameter> parameters{parameter_with("a", numbers({1.0, -2.0, 2.0}, at::kFloat)),
                                               parameter_with("b", numbers({4.0}, at::kDouble)),
                                               parameter_with("c", numbers({-12.0, 0.0}, at::kBFloat16)),
                                               {.name = "d", .value = at::ones({7})}};
  EXPECT_DOUBLE_EQ(gradient_norm(parameters), 13.0);
  EXPECT_EQ(gradient_norm({}), 0.0);
}

TEST(GradientNorm, ViewsCountTheirOwnNumbersOnly) {
  // Every second number of 0 … 7: 0, 2, 4, 6.
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const at::Tensor view = at::arange(8, type).view({4, 2}).select(1, 0);
    EXPECT_DOUBLE_EQ(gradient_norm({parameter_with("view", view)}), std::sqrt(56.0));
  }
}

TEST(GradientNorm, BitsDoNotDependOnTheNumberOfThreads) {
  RandomStream stream(1, "norm");
  std::vector<NamedParameter> parameters;
  for (const std::int64_t count : {1, 17, 70000, 300001}) {
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
      at::Tensor gradient = at::empty({count}, at::kDouble);
      for (std::int64_t i = 0; i < count; ++i) gradient.data_ptr<double>()[i] = stream.normal();
      parameters.push_back(parameter_with("parameter", gradient.to(type)));
    }
  }
  const int threads_before = num_threads();
  std::vector<double> norms;
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    norms.push_back(gradient_norm(parameters));
  }
  set_num_threads(threads_before);
  EXPECT_NEAR(norms[0], std::sqrt(2.0 * 370019.0), 5.0);
  EXPECT_EQ(norms[0], norms[1]);
  EXPECT_EQ(norms[0], norms[2]);
}

TEST(GradientNorm, NonFiniteGradientsHaveNonFiniteNorms) {
  for (const double bad : {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()}) {
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
      EXPECT_FALSE(std::isfinite(gradient_norm(
          {parameter_with("good", numbers({1.0}, type)), parameter_with("bad", numbers({1.0, bad, 2.0}, type))})));
    }
  }
}

TEST(GradientNorm, SparseGradientsAreRefusedByName) {
  const NamedParameter parameter = parameter_with("table", at::eye(3));
  parameter.value.mutable_grad() = at::eye(3).to_sparse();
  try {
    gradient_norm({parameter});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("\"table\" is sparse"), std::string::npos) << error.what();
  }
  EXPECT_FALSE(dense_gradient({.name = "none", .value = at::ones({1})}).defined());
}

TEST(ClipScale, KeepsShortGradientsAndShortensLongOnes) {
  EXPECT_EQ(clip_scale(0.5, 1.0), 1.0);
  EXPECT_EQ(clip_scale(0.0, 1.0), 1.0);
  EXPECT_DOUBLE_EQ(clip_scale(4.0, 1.0), 1.0 / 4.000001);
  EXPECT_DOUBLE_EQ(clip_scale(4.0, 0.5), 0.5 / 4.000001);
  // PyTorch's 1e-6 already counts at the limit itself.
  EXPECT_DOUBLE_EQ(clip_scale(1.0, 1.0), 1.0 / 1.000001);
}

TEST(ClipScale, ZeroMeansNoClippingAndBadNormsStayVisible) {
  EXPECT_EQ(clip_scale(1e9, 0.0), 1.0);
  EXPECT_TRUE(std::isnan(clip_scale(std::numeric_limits<double>::quiet_NaN(), 1.0)));
  EXPECT_EQ(clip_scale(std::numeric_limits<double>::infinity(), 1.0), 0.0);
  EXPECT_THROW(clip_scale(1.0, -1.0), InputError);
}

}  // namespace
}  // namespace routing::gradient_norm_test
