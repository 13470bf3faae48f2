#include "routing/model/image_embedding.h"

#include "routing/core/error.h"
#include "routing/model/transformer.h"
#include "routing/model/weights.h"
#include "support/message_of.h"
#include "support/small_experiment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

namespace routing::image_embedding_test {
namespace {

ModelConfig small_images() {
  ModelConfig model;
  model.vocab_size = 10;
  model.image_height = 2;
  model.image_width = 3;
  return model;
}

ExperimentConfig image_experiment() {
  ExperimentConfig config = small_experiment("routing");
  config.model.vocab_size = 256;
  config.model.image_height = 4;
  config.model.image_width = 3;
  config.train.sequence_length = 36;
  return config;
}

TEST(ImageTable, AValueIsReadFromTheTableOfTheChannelThatIsPredicted) {
  const at::Tensor values = at::tensor(std::vector<std::int64_t>{7, 8, 9, 1, 2}, at::kLong).view({1, 5});
  // Position 0 reads the start symbol, 1 (green) the 7 before it, 2 (blue) the 8, 3 (red again) the 9.
  const at::Tensor expected = at::tensor(std::vector<std::int64_t>{30, 10 + 7, 20 + 8, 9, 10 + 1}, at::kLong);
  EXPECT_TRUE(image_table_ids(small_images(), values).equal(expected.view({1, 5})));
  EXPECT_EQ(image_table_rows(small_images()), 31);
  EXPECT_EQ(image_start_id(small_images()), 30);
}

TEST(ImageTable, LongSequencesAndStrangeValuesAreRefused) {
  EXPECT_EQ(message_of<InputError>([] {
              image_table_ids(small_images(), at::zeros({1, 19}, at::kLong));
            }),
            "a sequence of 19 values, but an image of 2 x 3 pixels has 18");
  EXPECT_THROW(image_table_ids(small_images(), at::full({1, 3}, 10, at::kLong)), InputError);
  EXPECT_THROW(image_table_ids(small_images(), at::full({1, 3}, -1, at::kLong)), InputError);
}

TEST(ImageTableIds, OnePositionReadsTheRowOfTheWholeSequence) {
  const at::Tensor values = at::arange(18, at::kLong).remainder(10).view({1, 18});
  const at::Tensor ids = image_table_ids(small_images(), values);
  for (std::int64_t position = 0; position < 18; ++position) {
    const std::int64_t before = position == 0 ? -7 : values[0][position - 1].item<std::int64_t>();
    EXPECT_EQ(image_table_id(small_images(), position, before), ids[0][position].item<std::int64_t>());
  }
  EXPECT_THROW(image_table_id(small_images(), 18, 0), InputError);
  EXPECT_THROW(image_table_id(small_images(), 1, 10), InputError);
}

TEST(ImagePositions, AddRowColumnAndChannel) {
  // One number per row of the tables: their place.
  const ImagePositions tables{at::arange(6, at::kFloat).view({6, 1}) * 100, at::arange(9, at::kFloat).view({9, 1})};
  std::vector<std::int64_t> all(18);
  std::iota(all.begin(), all.end(), 0);
  const at::Tensor sum = image_positions(small_images(), tables, all).flatten();
  EXPECT_TRUE(at::equal(image_positions(small_images(), tables, std::vector<std::int64_t>{16, 3}).flatten(),
                        at::stack({sum[16], sum[3]})));
  for (std::int64_t row = 0; row < 2; ++row) {
    for (std::int64_t column = 0; column < 3; ++column) {
      for (std::int64_t channel = 0; channel < 3; ++channel) {
        const std::int64_t place = (row * 3 + column) * 3 + channel;
        EXPECT_EQ(sum[place].item<std::int64_t>(), 100 * (3 * row + channel) + 3 * column + channel);
      }
    }
  }
}

TEST(ImageModel, HasThreeTablesAStartAndPositionsOfVarianceOne) {
  Transformer model(image_experiment(), at::TensorOptions().dtype(at::kFloat));
  const auto tensors = named_tensors(*model);
  EXPECT_EQ(tensors.at("embedding").sizes(), (std::vector<std::int64_t>{769, 16}));
  EXPECT_EQ(tensors.at("row_positions").sizes(), (std::vector<std::int64_t>{12, 16}));
  EXPECT_EQ(tensors.at("column_positions").sizes(), (std::vector<std::int64_t>{9, 16}));
  EXPECT_EQ(tensors.at("output_weight").sizes(), (std::vector<std::int64_t>{256, 16}));
  EXPECT_NEAR((tensors.at("row_positions") * 4.0).var().item<double>(), 1.0, 0.25) << "times sqrt(16)";
}

// As docs/facts.md C5 has them: three tables of 256 rows, each with a variance of scale / mean of rows and columns.
TEST(ImageModel, ItsOneTableStartsAsThreeWould) {
  ExperimentConfig config = image_experiment();
  config.model.width = 512;
  config.model.feedforward_width = 16;
  config.model.initial_scale = 0.2;
  config.model.layers = 1;
  const Transformer model(config, at::TensorOptions().dtype(at::kFloat));
  const at::Tensor table = named_tensors(*model).at("embedding").detach().to(at::kDouble);
  ASSERT_EQ(table.sizes(), (std::vector<std::int64_t>{769, 512}));
  const auto* const values = table.data_ptr<double>();
  const auto deviation = [&](std::int64_t from, std::int64_t to) {
    double squares = 0.0;
    for (std::int64_t i = from * 512; i < to * 512; ++i) squares += values[i] * values[i];
    return std::sqrt(squares / static_cast<double>((to - from) * 512));
  };
  const double of_three = std::sqrt(0.2 / (0.5 * (256.0 + 512.0)));
  // 131,072 numbers: the deviation is known to 0.2 %. Drawn as one table of 769 rows it would be 23 % less.
  for (const std::int64_t channel : {0, 1, 2}) {
    EXPECT_NEAR(deviation(256 * channel, 256 * (channel + 1)) / of_three, 1.0, 0.01) << channel;
  }
  EXPECT_NEAR(deviation(768, 769) / of_three, 1.0, 0.15) << "the start symbol, 512 numbers";
}

TEST(ImageModel, TheFirstInputIsNotBlack) {
  Transformer model(image_experiment(), at::TensorOptions().dtype(at::kFloat));
  model->eval();
  const at::Tensor black = at::zeros({1, 36}, at::kLong);
  const at::Tensor before = model->logits(black, {}).detach().clone();
  // Changing what value 0 of the red table is changes later positions, not the first prediction.
  const at::NoGradGuard no_gradient;
  named_tensors(*model).at("embedding")[0].add_(1.0);
  const at::Tensor after = model->logits(black, {});
  EXPECT_TRUE(after.select(1, 0).equal(before.select(1, 0)));
  EXPECT_FALSE(after.select(1, 4).equal(before.select(1, 4)));
}

TEST(ImageModel, LaterValuesChangeNoEarlierPrediction) {
  Transformer model(image_experiment(), at::TensorOptions().dtype(at::kFloat));
  model->eval();
  at::Tensor values = random_tokens(1, 36, 256, 3);
  const at::Tensor before = model->logits(values, {}).detach().clone();
  values.select(1, 20).fill_(1 + values[0][20].item<std::int64_t>() % 255);
  const at::Tensor after = model->logits(values, {});
  EXPECT_TRUE(after.narrow(1, 0, 21).equal(before.narrow(1, 0, 21)));
  EXPECT_FALSE(after.narrow(1, 21, 15).equal(before.narrow(1, 21, 15)));
}

TEST(ImageModel, EveryTableLearns) {
  Transformer model(image_experiment(), at::TensorOptions().dtype(at::kFloat));
  model->loss(random_tokens(2, 36, 256, 5), {}).nats.sum().backward();
  for (const char* name : {"embedding", "row_positions", "column_positions"}) {
    EXPECT_GT(model->named_parameters()[name].grad().abs().sum().item<double>(), 0.0) << name;
  }
}

TEST(ImageModel, ATiedOutputIsRefused) {
  ExperimentConfig config = image_experiment();
  config.model.tied_output = true;
  EXPECT_THROW(validate(config), ConfigError);
}

TEST(TextModel, WithoutAVocabularyCannotBeMade) {
  ExperimentConfig config = small_experiment("local");
  config.model.vocab_size = 0;
  EXPECT_THROW(Transformer(config, at::TensorOptions().dtype(at::kFloat)), ConfigError);
}

}  // namespace
}  // namespace routing::image_embedding_test
