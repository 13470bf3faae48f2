#include "routing/ops/layer_norm.h"

#include "routing/core/error.h"
#include "support/finite_differences.h"
#include "support/pattern_cases.h"
#include "support/thread_guard.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

namespace routing::layer_norm_test {
namespace {

using support::random_tensor;

at::Tensor random_floats(at::IntArrayRef sizes, std::uint64_t seed) {
  return random_tensor(sizes, seed).to(at::kFloat);
}

// Output and gradients of x, gain, bias.
std::vector<at::Tensor> run(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& bias, const at::Tensor& dy) {
  const std::vector<at::Tensor> leaves{x.detach().requires_grad_(), gain.detach().requires_grad_(),
                                       bias.detach().requires_grad_()};
  const at::Tensor y = layer_norm(leaves[0], leaves[1], leaves[2], 1e-5);
  auto results = torch::autograd::grad({y}, leaves, {dy});
  results.insert(results.begin(), y.detach());
  return results;
}

TEST(LayerNorm, HandWorkedRows) {
  // Mean 2, variance 1; then times (1, 10), plus (0, 5). A constant row has no deviation: only the bias remains.
  const at::Tensor x = at::tensor({1.0F, 3.0F, 4.0F, 4.0F}).view({2, 2});
  const at::Tensor y = layer_norm(x, at::tensor({1.0F, 10.0F}), at::tensor({0.0F, 5.0F}), 1e-12);
  EXPECT_TRUE(at::allclose(y, at::tensor({-1.0F, 15.0F, 0.0F, 5.0F}).view({2, 2})));
  EXPECT_TRUE(at::allclose(layer_norm(x, {}, {}, 3.0), at::tensor({-0.5F, 0.5F, 0.0F, 0.0F}).view({2, 2})));
}

TEST(LayerNorm, FloatEqualsDoubleForwardAndBackward) {
  for (const std::int64_t width : {1, 3, 16, 17, 64, 300}) {
    for (const std::int64_t rows : {1, 5, 600}) {
      // Neighbours are far apart, so that no row's deviation is small against its values.
      const at::Tensor x = random_tensor({rows, width}, 1) + at::arange(width, at::kDouble).remainder(2) * 16.0 + 4.0;
      const at::Tensor gain = random_tensor({width}, 2);
      const at::Tensor bias = random_tensor({width}, 3);
      const at::Tensor dy = random_tensor({rows, width}, 4);
      const auto as_float = run(x.to(at::kFloat), gain.to(at::kFloat), bias.to(at::kFloat), dy.to(at::kFloat));
      const auto as_double = run(x.to(at::kFloat).to(at::kDouble), gain, bias, dy);
      for (std::size_t i = 0; i < 4; ++i) {
        // Values below 30 carry an error of 30 * 2^-24 into a deviation of about 8; columns sum over the rows.
        EXPECT_TRUE(at::allclose(as_float[i].to(at::kDouble), as_double[i], 1e-4, i < 2 ? 2e-5 : 2e-3))
            << rows << " rows of " << width << ", result " << i << ": "
            << (as_float[i].to(at::kDouble) - as_double[i]).abs().max().item<double>();
      }
    }
  }
}

TEST(LayerNorm, DoubleEqualsTorchs) {
  const at::Tensor x = random_tensor({4, 5, 7}, 1);
  const at::Tensor gain = random_tensor({7}, 2);
  const at::Tensor bias = random_tensor({7}, 3);
  EXPECT_TRUE(at::allclose(layer_norm(x, gain, bias, 1e-3), at::layer_norm(x, {7}, gain, bias, 1e-3), 1e-12, 1e-12));
  EXPECT_TRUE(at::allclose(layer_norm(x, {}, {}, 1e-3), at::layer_norm(x, {7}, {}, {}, 1e-3), 1e-12, 1e-12));
}

TEST(LayerNorm, GradientsEqualFiniteDifferencesInDouble) {
  const std::vector<at::Tensor> inputs{random_tensor({3, 4}, 1), random_tensor({4}, 2), random_tensor({4}, 3)};
  const auto with_all = [](const std::vector<at::Tensor>& x) { return layer_norm(x[0], x[1], x[2], 1e-2).view({-1}); };
  const auto with_gain = [](const std::vector<at::Tensor>& x) { return layer_norm(x[0], x[1], {}, 1e-2).view({-1}); };
  const auto with_bias = [](const std::vector<at::Tensor>& x) { return layer_norm(x[0], {}, x[1], 1e-2).view({-1}); };
  const auto plain = [](const std::vector<at::Tensor>& x) { return layer_norm(x[0], {}, {}, 1e-2).view({-1}); };
  EXPECT_LT(support::jacobian_error(with_all, inputs), 1e-8);
  EXPECT_LT(support::jacobian_error(with_gain, {inputs[0], inputs[1]}), 1e-8);
  EXPECT_LT(support::jacobian_error(with_bias, {inputs[0], inputs[1]}), 1e-8);
  EXPECT_LT(support::jacobian_error(plain, {inputs[0]}), 1e-8);
}

TEST(LayerNorm, BitsDependNeitherOnRowsNorOnThreads) {
  const support::ThreadGuard guard;
  const at::Tensor x = random_floats({700, 37}, 1);
  const at::Tensor gain = random_floats({37}, 2);
  const at::Tensor bias = random_floats({37}, 3);
  const at::Tensor dy = random_floats({700, 37}, 4);
  set_num_threads(1);
  const auto whole = run(x, gain, bias, dy);
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    const auto again = run(x, gain, bias, dy);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(again[i].equal(whole[i])) << threads << " threads, result " << i;
    for (const std::int64_t rows : {1, 2, 63, 200}) {
      const auto part = run(x.narrow(0, 300, rows), gain, bias, dy.narrow(0, 300, rows));
      EXPECT_TRUE(part[0].equal(whole[0].narrow(0, 300, rows)));
      EXPECT_TRUE(part[1].equal(whole[1].narrow(0, 300, rows)));
    }
  }
}

// x + norm(x) w, whose two gradients of x meet in the norm.
TEST(LayerNormAndInput, SumsTheGradientsOfBothUses) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const std::vector<at::Tensor> leaves{random_tensor({2, 300, 7}, 1).to(type).requires_grad_(),
                                         random_tensor({7}, 2).to(type).requires_grad_(),
                                         random_tensor({7}, 3).to(type).requires_grad_()};
    const at::Tensor w = random_tensor({2, 300, 7}, 4).to(type);
    const at::Tensor d = random_tensor({2, 300, 7}, 5).to(type);
    const NormAndInput both = layer_norm_and_input(leaves[0], leaves[1], leaves[2], 1e-2);
    const at::Tensor apart = layer_norm(leaves[0], leaves[1], leaves[2], 1e-2);
    EXPECT_TRUE(at::equal(both.normalised, apart));
    EXPECT_TRUE(at::equal(both.input, leaves[0]));
    const auto found = torch::autograd::grad({both.input + both.normalised * w}, leaves, {d}, true);
    const auto wanted = torch::autograd::grad({leaves[0] + apart * w}, leaves, {d}, true);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(at::allclose(found[i], wanted[i], 1e-5, 1e-5)) << i;
    if (type == at::kFloat) {
      EXPECT_THROW(torch::autograd::grad({both.normalised}, {leaves[0]}, {d}, true, /*create_graph=*/true), InputError);
    }
    // One use alone.
    EXPECT_TRUE(at::allclose(torch::autograd::grad({both.input}, {leaves[0]}, {d}, true)[0], d));
    EXPECT_TRUE(at::allclose(torch::autograd::grad({both.normalised}, {leaves[0]}, {d}, true)[0],
                             torch::autograd::grad({apart}, {leaves[0]}, {d}, true)[0], 1e-5, 1e-6));
  }
}

TEST(LayerNorm, TakesNoRowsMetaTensorsAndAnyStrides) {
  EXPECT_EQ(layer_norm(at::empty({0, 3}), {}, {}, 1e-5).sizes(), at::IntArrayRef({0, 3}));
  EXPECT_EQ(layer_norm(at::empty({2, 4, 3}, at::kMeta), at::empty({3}, at::kMeta), {}, 1e-5).sizes(),
            at::IntArrayRef({2, 4, 3}));
  const at::Tensor x = random_floats({4, 6}, 1).t();
  const at::Tensor gain = random_floats({8}, 1).slice(0, 0, 8, 2);
  EXPECT_TRUE(layer_norm(x, gain, {}, 1e-5).equal(layer_norm(x.contiguous(), gain.contiguous(), {}, 1e-5)));
}

TEST(LayerNorm, EachMisfitIsAnInputError) {
  const at::Tensor x = at::zeros({2, 3});
  EXPECT_THROW(layer_norm(x, at::zeros({2}), {}, 1e-5), InputError);
  EXPECT_THROW(layer_norm(x, {}, at::zeros({2}), 1e-5), InputError);
  EXPECT_THROW(layer_norm(x, at::zeros({3}, at::kDouble), {}, 1e-5), InputError);
  EXPECT_THROW(layer_norm(x.to(at::kLong), {}, {}, 1e-5), InputError);
  EXPECT_THROW(layer_norm(x, {}, {}, -1.0), InputError);
  EXPECT_THROW(layer_norm(at::zeros({2, 0}), {}, {}, 1e-5), InputError);
}

// Heads of a projection, some of them, and views that no projection makes: none may be read or written elsewhere.
TEST(LayerNorm, RowsWithStridesGiveTheBitsOfTheirCopies) {
  const at::Tensor all = random_tensor({2, 37, 5, 19}, 3, at::kFloat);
  const std::vector<at::Tensor> views{
      all.transpose(1, 2),
      all.transpose(1, 2).narrow(1, 1, 3),
      all.transpose(1, 2).narrow(2, 5, 17),
      all.narrow(3, 2, 11),
      all.narrow(1, 0, 1).expand({2, 40, 5, 19}),
      all.transpose(1, 3),
      all.narrow(2, 0, 1).transpose(1, 2),
      all.narrow(2, 0, 0).transpose(1, 2),
      all,
  };
  const at::Tensor before = all.clone();
  for (std::size_t i = 0; i < views.size(); ++i) {
    const at::Tensor copy = views[i].contiguous().clone().view({-1, views[i].size(3)}).set_requires_grad(true);
    const at::Tensor view = views[i].detach().set_requires_grad(true);
    const at::Tensor gain = random_tensor({views[i].size(3)}, 4, at::kFloat).set_requires_grad(true);
    const at::Tensor same_gain = gain.detach().clone().set_requires_grad(true);
    const at::Tensor expected = layer_norm(copy, gain, {}, 1e-6);
    const at::Tensor output = layer_norm(view, same_gain, {}, 1e-6);
    ASSERT_EQ(output.sizes(), views[i].sizes());
    EXPECT_TRUE(output.reshape(expected.sizes()).equal(expected)) << "view " << i;
    const at::Tensor gradient = random_tensor(views[i].sizes(), 5, at::kFloat);
    expected.backward(gradient.view(expected.sizes()));
    output.backward(gradient);
    EXPECT_TRUE(view.grad().reshape(expected.sizes()).equal(copy.grad())) << "view " << i;
    EXPECT_TRUE(at::allclose(same_gain.grad(), gain.grad(), 1e-5, 1e-5)) << "view " << i;
    EXPECT_TRUE(all.equal(before)) << "view " << i;
  }
}

// Without gain and bias the gradient is worked out from the output; with a gain of 1 from the input.
TEST(LayerNormWithoutGain, HasTheGradientOfAGainOfOne) {
  const at::Tensor projection = random_tensor({2, 9, 3 * 16}, 1).to(at::kFloat);
  const at::Tensor d = random_tensor({2, 2, 9, 16}, 2).to(at::kFloat);
  for (const bool inside : {true, false}) {
    at::Tensor whole = projection.view({2, 9, 3, 16}).transpose(1, 2);
    if (!inside) whole = whole.contiguous();
    const at::Tensor heads = whole.narrow(1, 1, 2).detach().requires_grad_();
    const auto plain = torch::autograd::grad({layer_norm(heads, {}, {}, 1e-6)}, {heads}, {d});
    const auto with_gain =
        torch::autograd::grad({layer_norm(heads, at::ones({16}), at::zeros({16}), 1e-6)}, {heads}, {d});
    EXPECT_TRUE(at::allclose(plain[0], with_gain[0], 1e-6, 1e-6)) << inside;
    EXPECT_EQ(plain[0].stride(1) < plain[0].stride(2), inside) << "the gradient of a projection needs no copy";
  }
}

}  // namespace
}  // namespace routing::layer_norm_test
