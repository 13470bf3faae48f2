// What the benchmarks measure: names, sizes, pairs, operations. Never how fast it was.
#include "lab/bench/attention_bench.h"

#include "lab/bench/small_sizes.h"
#include "lab/measure/gemm_rate.h"
#include "routing/core/error.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace routing::bench::attention_bench_test {
namespace {

TEST(AttentionWork, PairsOfPositionPatternsAreThoseOfPlainLoops) {
  EXPECT_EQ(AttentionWork("local", kSmall, 1).pairs(), sliding_pairs(kSmall));
  EXPECT_EQ(AttentionWork("local_offsets", kSmall, 1).pairs(), sliding_pairs(kSmall));
  EXPECT_EQ(AttentionWork("span", kSmall, 1).pairs(), sliding_pairs(kSmall));
  EXPECT_EQ(AttentionWork("full", kSmall, 1).pairs(), 2 * 2 * 96 * 97 / 2);
  // The later half of 96 tokens, each with 16 keys.
  EXPECT_EQ(AttentionWork("memory", kSmall, 1).pairs(), 2 * 2 * 48 * 16);
  // 96 / 16 = 6 residues of 16 tokens each.
  EXPECT_EQ(AttentionWork("strided", kSmall, 1).pairs(), 2 * 2 * 6 * (16 * 17 / 2));
  // Cells of 8 x 96 / 16 = 48 tokens: the last 8 of each sum it up.
  EXPECT_EQ(AttentionWork("fixed", kSmall, 1).pairs(), 2 * 2 * (2 * 8 * 9 / 2 + 48 * 8));
  // 96 tokens are 32 pixels, 6 to a row (the last row has 2); a window of 16 is a block of one pixel and one around it.
  std::int64_t pairs = 0;
  for (std::int64_t i = 0; i < 96; ++i) {
    for (std::int64_t j = 0; j <= i; ++j) {
      if (j / 18 >= i / 18 - 1 && std::abs(j / 3 % 6 - i / 3 % 6) <= 1) ++pairs;
    }
  }
  EXPECT_EQ(AttentionWork("local2d", kSmall, 1).pairs(), 2 * 2 * pairs);
}

TEST(AttentionWork, EveryPatternRunsEveryPassInEveryPrecision) {
  for (const std::string& pattern : attention_patterns()) {
    const AttentionWork work(pattern, kSmall, 1);
    EXPECT_GT(work.pairs(), 0) << pattern;
    for (const Pass pass : {Pass::plan, Pass::forward, Pass::forward_backward}) {
      for (const MatmulPrecision precision : {MatmulPrecision::fp32, MatmulPrecision::bf16}) {
        EXPECT_NO_THROW(work.run(pass, precision)) << pattern << " " << to_string(pass);
      }
    }
  }
}

TEST(AttentionWork, PlansStayTheSameFromRunToRun) {
  for (const std::string pattern : {"nearest", "threshold", "balanced", "random", "lsh"}) {
    const AttentionWork work(pattern, kSmall, 1);
    const Plan first = work.make_plan();
    work.run(Pass::forward_backward, MatmulPrecision::fp32);
    EXPECT_TRUE(work.make_plan() == first) << pattern;
  }
}

TEST(AttentionWork, ThresholdsAreThoseOfTrainingSoThatClustersAreNearlyEqual) {
  const AttentionSizes sizes{.n = 1024, .heads = 2, .dim = 16, .window = 128, .clusters = 8};
  const AttentionWork work("threshold", sizes, 1);
  // Thresholds aim at one membership per token; those above none still join the best.
  ASSERT_TRUE(work.memberships().has_value());
  EXPECT_GE(*work.memberships(), 1.0);
  EXPECT_LT(*work.memberships(), 1.8);
  const Plan plan = work.make_plan();
  for (std::int64_t group = 0; group < plan.num_groups(); ++group) {
    EXPECT_GT(group_range(plan, group).num_queries(), 0) << group;
  }
  EXPECT_FALSE(AttentionWork("local", sizes, 1).memberships().has_value());
}

TEST(AttentionWork, LeavesShareKeysWithQueriesOnlyInRoutedHeads) {
  EXPECT_EQ(AttentionWork("local", kSmall, 1).leaves().size(), 3U);
  EXPECT_EQ(AttentionWork("threshold", kSmall, 1).leaves().size(), 2U);
}

TEST(AttentionWork, WrongWordsAndSizesAreRefusedByName) {
  const auto message_of = [](const auto& work) -> std::string {
    try {
      work();
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message_of([] { attention_heads("treshold", kSmall); }).find("did you mean 'threshold'?"),
            std::string::npos);
  AttentionSizes longer = kSmall;
  longer.window = 97;
  const std::string message = message_of([&] { attention_heads("local", longer); });
  EXPECT_NE(message.find("window 97"), std::string::npos) << message;
  EXPECT_NE(message.find("96 tokens"), std::string::npos) << message;
  AttentionSizes none = kSmall;
  none.heads = 0;
  EXPECT_NE(message_of([&] { attention_heads("local", none); }).find("heads is 0"), std::string::npos);
  EXPECT_NE(message_of([] { parse_word<Pass>("forwards", "pass"); }).find("did you mean 'forward'?"),
            std::string::npos);
  EXPECT_NE(message_of([] { parse_word<MatmulPrecision>("fp23", "precision"); }).find("did you mean 'fp32'?"),
            std::string::npos);
  EXPECT_EQ(parse_word<Pass>("forward+backward", "pass"), Pass::forward_backward);
  EXPECT_EQ(parse_word<MatmulPrecision>("bf16", "precision"), MatmulPrecision::bf16);
}

TEST(AttentionBench, HasARowForEveryCaseAndOnePlanAPattern) {
  const std::vector<Row> rows =
      bench_attention({.sizes = kSmall, .patterns = {"local", "threshold"}, .runner = {.repeats = 5}});
  ASSERT_EQ(rows.size(), 2U * (1 + 2 * 2));
  for (const Row& row : rows) {
    EXPECT_EQ(row.bench, "attention");
    EXPECT_GT(row.seconds(), 0.0);
    EXPECT_EQ(row.timing.samples, 5);
    EXPECT_GT(row.gemm_gflops, 0.0);
    EXPECT_DOUBLE_EQ(row.flops, attention_flops(parse_word<Pass>(row.pass, "pass"), row.pairs, 8));
    EXPECT_DOUBLE_EQ(row.tokens_per_second(), 2.0 * 96.0 / row.seconds());
    ASSERT_TRUE(row.plan_share.has_value());
    if (row.pattern == "local") {
      EXPECT_DOUBLE_EQ(row.ratio, 1.0);
    }
    if (row.pass == "plan") {
      EXPECT_DOUBLE_EQ(*row.plan_share, 1.0);
    }
  }
  const Row* const local =
      find_row(rows, [](const Row& row) { return row.pattern == "local" && row.pass == "forward"; });
  const Row* const routed =
      find_row(rows, [](const Row& row) { return row.pattern == "threshold" && row.pass == "forward"; });
  ASSERT_NE(local, nullptr);
  ASSERT_NE(routed, nullptr);
  const double expected =
      routed->seconds() / static_cast<double>(routed->pairs) / (local->seconds() / static_cast<double>(local->pairs));
  EXPECT_NEAR(routed->ratio, expected, 1e-12 * expected);
}

TEST(AttentionBench, OperationsOfAPassAreTheSumOfItsParts) {
  EXPECT_DOUBLE_EQ(attention_flops(Pass::plan, 10, 4), 0.0);
  EXPECT_DOUBLE_EQ(attention_flops(Pass::forward, 10, 4), 160.0);
  EXPECT_DOUBLE_EQ(attention_flops(Pass::forward_backward, 10, 4), 160.0 + 400.0);
}

TEST(GemmProbe, CountsTwoOperationsForEveryProduct) {
  GemmProbe gemm;
  gemm.run();
  EXPECT_DOUBLE_EQ(gemm.flops(), 2.0 * 4096.0 * 512.0 * 2048.0);
  const std::string_view type = to_string(gemm.type());
  EXPECT_TRUE(type == "bf16" || type == "fp32") << type;
}

TEST(GemmProduct, IsTheProductOfItsFactors) {
  GemmProduct product({.rows = 3, .depth = 5, .columns = 2}, MatmulPrecision::fp32);
  product.run();
  EXPECT_DOUBLE_EQ(product.flops(), 60.0);
  EXPECT_TRUE(at::allclose(product.result(), at::mm(product.left(), product.right()), 1e-5, 1e-6));
}

}  // namespace
}  // namespace routing::bench::attention_bench_test
