// Compressed memory: the four compressions against plain loops, what a memory holds of them, and which gradients flow.
#include "routing/model/compression.h"

#include "routing/config/parameter_count.h"
#include "routing/core/error.h"
#include "routing/model/transformer.h"
#include "support/pattern_cases.h"
#include "support/segments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

namespace routing::compression_test {
namespace {

ExperimentConfig compressing(const std::string& content, Compression compression) {
  ExperimentConfig config = memory_experiment(content, 12, 16);
  config.memory.compressed = 7;
  config.memory.rate = 4;
  config.memory.compression = compression;
  return config;
}

constexpr Compression kAll[] = {Compression::mean, Compression::max, Compression::convolution, Compression::most_used};

TEST(Compression, EqualsPlainLoops) {
  const at::Tensor rows = support::random_tensor({2, 12, 5}, 1, at::kDouble);
  const at::Tensor weight = support::random_tensor({5, 15}, 2, at::kDouble);
  const auto x = rows.accessor<double, 3>();
  const auto w = weight.accessor<double, 2>();
  for (const Compression compression : {Compression::mean, Compression::max, Compression::convolution}) {
    const at::Tensor made = compressed_rows(rows, {.rate = 3, .compression = compression}, {.weight = weight});
    ASSERT_EQ(made.sizes(), at::IntArrayRef({2, 4, 5}));
    for (std::int64_t stream = 0; stream < 2; ++stream) {
      for (std::int64_t place = 0; place < 4; ++place) {
        for (std::int64_t column = 0; column < 5; ++column) {
          double sum = 0.0;
          double largest = -std::numeric_limits<double>::infinity();
          double product = 0.0;
          for (std::int64_t i = 0; i < 3; ++i) {
            sum += x[stream][place * 3 + i][column];
            largest = std::max(largest, x[stream][place * 3 + i][column]);
            for (std::int64_t from = 0; from < 5; ++from) {
              product += w[column][i * 5 + from] * x[stream][place * 3 + i][from];
            }
          }
          const double expected = compression == Compression::mean  ? sum / 3.0
                                  : compression == Compression::max ? largest
                                                                    : product;
          EXPECT_NEAR(made[stream][place][column].item<double>(), expected, 1e-12);
        }
      }
    }
  }
}

TEST(Compression, AConvolutionStartsAsTheMean) {
  const at::Tensor rows = support::random_tensor({2, 12, 5}, 3, at::kDouble);
  const at::Tensor weight = initial_compression(5, 4, at::TensorOptions().dtype(at::kDouble));
  const at::Tensor mean = compressed_rows(rows, {.rate = 4, .compression = Compression::mean}, {});
  EXPECT_TRUE(at::allclose(compressed_rows(rows, {.rate = 4}, {.weight = weight}), mean, 1e-12, 1e-12));
}

TEST(Compression, TheMostUsedStayInTheirOrderAndTiesGoToTheEarlier) {
  const at::Tensor rows = at::arange(12, at::kFloat).view({2, 6, 1});
  const at::Tensor usage = at::tensor({1.0, 5.0, 2.0, 5.0, 9.0, 0.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0}).view({2, 6});
  const MemoryConfig three{.rate = 2, .compression = Compression::most_used};
  EXPECT_TRUE(at::equal(compressed_rows(rows, three, {.usage = usage}).flatten(),
                        at::tensor({1.0, 3.0, 4.0, 6.0, 7.0, 8.0}, at::kFloat)));
  EXPECT_THROW(compressed_rows(rows, {.rate = 4}, {}), InputError);
}

TEST(Compression, AtRateOneEqualsALongerMemoryBitForBit) {
  const at::NoGradGuard no_gradient;
  for (const char* content : {"local", "full", "routing"}) {
    ExperimentConfig config = memory_experiment(content, 32, 32);
    Transformer longer(config, at::TensorOptions().dtype(at::kFloat));
    config.memory.compressed = 48;
    config.memory.rate = 1;
    config.memory.compression = Compression::mean;
    Transformer compresses(config, at::TensorOptions().dtype(at::kFloat));
    longer->eval();
    compresses->eval();
    const at::Tensor text = random_tokens(2, 200, 37, 4);
    const at::Tensor expected = logits_by_segments(*longer, text, {32, 80});
    EXPECT_TRUE(at::equal(logits_by_segments(*compresses, text, {32, 32}), expected)) << content;
    if (std::string(content) == "full") {
      EXPECT_FALSE(at::allclose(logits_by_segments(*longer, text, {32, 32}), expected));
    }
  }
}

// Two layers of a memory of 16 tokens, 7 places and segments of 12: what has left is compressed four by four, the
// oldest places go.
TEST(Compression, AMemoryKeepsTheLastTokensAndTheLastPlacesOfWhatLeft) {
  const at::NoGradGuard no_gradient;
  for (const Compression compression : {Compression::mean, Compression::max, Compression::convolution}) {
    Transformer model(compressing("full", compression), at::TensorOptions().dtype(at::kFloat));
    model->eval();
    const at::Tensor text = random_tokens(2, 60, 37, 5);
    const at::Tensor shifted = at::cat({at::zeros({2, 1}, at::kLong), text.slice(1, 0, -1)}, 1);
    // What the first layer reads, of all tokens.
    const at::Tensor all = model->named_parameters()["embedding"].index_select(0, shifted.flatten()).view({2, 60, 36});
    ModelMemory memory{.length = 16};
    for (std::int64_t read = 12; read <= 60; read += 12) {
      model->logits(text.narrow(1, read - 12, 12), {.memory = &memory});
      const std::int64_t left = read > 16 ? read - 16 : 0;
      EXPECT_TRUE(at::equal(memory.layers[0], all.narrow(1, left, read - left)));
      const at::Tensor places = left == 0 ? all.narrow(1, 0, 0) : model->block(0)->compress(all.narrow(1, 0, left), {});
      const std::int64_t kept = std::min<std::int64_t>(7, left / 4);
      EXPECT_TRUE(at::allclose(memory.compressed[0], places.narrow(1, left / 4 - kept, kept), 1e-6, 1e-6)) << read;
      EXPECT_EQ(memory.past(1).size(1), read - left + kept);
    }
    ModelMemory copy{.length = 16};
    copy.set_tensors(memory.tensors());
    EXPECT_TRUE(at::equal(copy.compressed[1], memory.compressed[1]));
  }
}

// Usage from the model's own plan and vectors by dense softmax: the column sums of all heads' probabilities.
TEST(Compression, UsageIsTheAttentionThatEachKeyGot) {
  const at::NoGradGuard no_gradient;
  AttentionConfig config{.width = 12, .head_dim = 4, .initial_scale = 1.0, .head_groups = {{.heads = 3}}};
  MultiHeadAttention attention(config, LayerPlace{}, at::TensorOptions().dtype(at::kDouble));
  attention->eval();
  AttentionState state{.past = support::random_tensor({2, 5, 12}, 6, at::kDouble), .wants_usage = true};
  const at::Tensor input = support::random_tensor({2, 6, 12}, 7, at::kDouble);
  attention->forward(input, state);
  const auto parameters = attention->named_parameters();
  const auto heads = [&](const at::Tensor& x, const char* name) {
    return at::matmul(x, parameters[name].t()).view({2, -1, 3, 4}).transpose(1, 2);
  };
  const at::Tensor keys = heads(at::cat({state.past, input}, 1), "key_weight");
  const at::Tensor scores = at::matmul(heads(input, "query_weight"), keys.transpose(2, 3)) / 2.0;
  const at::Tensor future = at::ones({6, 11}, at::kBool).triu(6);
  const at::Tensor shares = at::softmax(scores.masked_fill(future, -std::numeric_limits<double>::infinity()), -1);
  EXPECT_TRUE(at::allclose(state.usage, shares.sum(2).sum(1), 1e-10, 1e-10));
}

TEST(Compression, ReadsByContentWhatEveryHeadWouldOfAllRows) {
  AttentionConfig config{.width = 12, .head_dim = 4, .initial_scale = 1.0, .head_groups = {{.heads = 3}}};
  MultiHeadAttention attention(config, LayerPlace{}, at::TensorOptions().dtype(at::kDouble));
  const at::Tensor input = support::random_tensor({2, 6, 12}, 8, at::kDouble);
  const at::Tensor rows = support::random_tensor({2, 4, 12}, 9, at::kDouble).requires_grad_(true);
  const at::Tensor read = attention->read_content(input, rows, MatmulPrecision::fp32);
  const auto parameters = attention->named_parameters();
  const auto heads = [&](const at::Tensor& x, const char* name) {
    return at::matmul(x, parameters[name].t()).view({2, -1, 3, 4}).transpose(1, 2);
  };
  const at::Tensor shares =
      at::softmax(at::matmul(heads(input, "query_weight"), heads(rows, "key_weight").transpose(2, 3)) / 2.0, -1);
  const at::Tensor expected = at::matmul(shares, heads(rows, "value_weight")).transpose(1, 2).flatten(2);
  EXPECT_TRUE(at::allclose(read, expected, 1e-10, 1e-10));
  read.sum().backward();
  EXPECT_TRUE(rows.grad().defined());
  for (const auto& item : parameters) EXPECT_FALSE(item.value().grad().defined()) << item.key();
}

// The main loss never reaches the compression, and what reaches it reaches nothing else.
TEST(Compression, ItsLossAndTheMainOneTeachDifferentWeights) {
  for (const char* content : {"full", "routing"}) {
    for (const NormPlacement norm : {NormPlacement::pre, NormPlacement::post}) {
      ExperimentConfig config = compressing(content, Compression::convolution);
      config.model.norm = norm;
      Transformer model(config, at::TensorOptions().dtype(at::kFloat));
      model->train();
      const at::Tensor text = random_tokens(2, 60, 37, 10);
      ModelMemory memory{.length = 16};
      SequenceModel::Loss loss;
      for (std::int64_t first = 0; first < 60; first += 12) {
        loss = model->loss(text.narrow(1, first, 12), {.step = static_cast<std::uint64_t>(first), .memory = &memory});
      }
      ASSERT_EQ(loss.reconstruction.sizes(), at::IntArrayRef({2, 12}));
      EXPECT_GT(loss.reconstruction.sum().item<double>(), 0.0);
      loss.nats.sum().backward();
      for (const auto& item : model->named_parameters()) {
        const bool compresses = item.key().find("compression_weight") != std::string::npos;
        EXPECT_EQ(item.value().grad().defined(), !compresses) << item.key();
      }
      model->zero_grad();
      loss.reconstruction.sum().backward();
      for (const auto& item : model->named_parameters()) {
        const bool compresses = item.key().find("compression_weight") != std::string::npos;
        const bool moved = item.value().grad().defined() && item.value().grad().abs().sum().item<double>() > 0.0;
        EXPECT_EQ(moved, compresses) << item.key();
      }
    }
  }
}

TEST(Compression, ItsWeightsAreCounted) {
  for (const Compression compression : kAll) {
    const ExperimentConfig config = compressing("full", compression);
    const Transformer model(config, at::TensorOptions().dtype(at::kFloat));
    EXPECT_EQ(count_parameters(config).total(), model->num_parameters());
  }
}

TEST(Compression, NothingIsLostInEvaluationAndWithoutAConvolution) {
  for (const Compression compression : kAll) {
    Transformer model(compressing("full", compression), at::TensorOptions().dtype(at::kFloat));
    ModelMemory memory{.length = 16};
    const at::Tensor text = random_tokens(2, 24, 37, 11);
    model->train();
    const SequenceModel::Loss first = model->loss(text.narrow(1, 0, 12), {.memory = &memory});
    EXPECT_EQ(first.reconstruction.defined(), compression == Compression::convolution);
    if (first.reconstruction.defined()) {
      EXPECT_EQ(first.reconstruction.sum().item<double>(), 0.0) << "nothing left yet";
    }
    model->eval();
    EXPECT_FALSE(model->loss(text.narrow(1, 12, 12), {.memory = &memory}).reconstruction.defined());
  }
}

TEST(Compression, LaterTokensChangeNoEarlierBitOverSegments) {
  const at::NoGradGuard no_gradient;
  for (const Compression compression : kAll) {
    for (const char* content : {"full", "routing"}) {
      Transformer model(compressing(content, compression), at::TensorOptions().dtype(at::kFloat));
      model->eval();
      const at::Tensor text = random_tokens(1, 70, 37, 12);
      const at::Tensor before = logits_by_segments(*model, text, {12, 16});
      for (const std::int64_t place : {0, 11, 12, 29, 36, 59, 60, 69}) {
        at::Tensor changed = text.clone();
        changed.narrow(1, place, 70 - place).copy_(random_tokens(1, 70 - place, 37, 13));
        const at::Tensor after = logits_by_segments(*model, changed, {12, 16});
        EXPECT_TRUE(at::equal(after.narrow(1, 0, place + 1), before.narrow(1, 0, place + 1))) << content << place;
      }
    }
  }
}

}  // namespace
}  // namespace routing::compression_test
