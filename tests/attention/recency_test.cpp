#include "routing/attention/recency.h"

#include <gtest/gtest.h>

namespace routing {
namespace {

TEST(Recency, SlopesHalveFromHeadToHeadOfEight) {
  EXPECT_DOUBLE_EQ(recency_of_key(0, 8, 10, 1.0), 5.0);
  EXPECT_DOUBLE_EQ(recency_of_key(1, 8, 10, 1.0), 2.5);
  EXPECT_DOUBLE_EQ(recency_of_key(7, 8, 256, 0.5), 2.0);
  EXPECT_DOUBLE_EQ(recency_of_key(1, 2, 256, 1.0), 1.0);
}

TEST(Recency, ColumnsHoldTheValuesOfKeysAndOnes) {
  const at::Tensor column = recency_column(2, 3, 0.5, at::TensorOptions().dtype(at::kFloat));
  EXPECT_EQ(column.sizes(), at::IntArrayRef({1, 2, 3, 1}));
  for (std::int64_t head = 0; head < 2; ++head) {
    for (std::int64_t position = 0; position < 3; ++position) {
      EXPECT_EQ(column[0][head][position][0].item<float>(), static_cast<float>(recency_of_key(head, 2, position, 0.5)));
    }
  }
  const at::Tensor queries = at::full({1, 2, 3, 4}, 7.0);
  const at::Tensor longer = with_one(queries);
  EXPECT_TRUE(at::equal(longer.narrow(3, 0, 4), queries));
  EXPECT_TRUE(at::equal(longer.narrow(3, 4, 1), at::ones({1, 2, 3, 1})));
  const at::Tensor table = at::full({5, 4}, 2.0);
  EXPECT_TRUE(at::equal(with_zero(table), at::cat({table, at::zeros({5, 1})}, 1)));
  EXPECT_FALSE(with_zero({}).defined());
}

}  // namespace
}  // namespace routing
