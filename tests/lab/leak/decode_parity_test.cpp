#include "lab/leak/decode_parity.h"

#include "routing/core/error.h"
#include "support/message_of.h"
#include "support/small_experiment.h"

#include <gtest/gtest.h>

#include <string>

namespace routing::decode_parity_test {
namespace {

std::shared_ptr<SequenceModel> model_of(const ExperimentConfig& config) {
  return make_model(config, at::TensorOptions().dtype(at::kFloat));
}

TEST(DecodeParity, IsExactForEveryModelWithACacheAndHasAReasonForOthers) {
  for (const ContentCase& each : content_cases()) {
    const at::Tensor tokens = random_tokens(1, 60, 256, 1)[0];
    for (const MatmulPrecision precision : {MatmulPrecision::fp32, MatmulPrecision::bf16}) {
      const DecodeParity parity =
          decode_parity(model_of(each.config), tokens, {.precision = precision, .positions = 41});
      const bool cached = each.name != "random" && each.name != "balanced";
      EXPECT_EQ(parity.exact(), cached) << each.name;
      EXPECT_EQ(parity.reason.empty(), cached) << parity.reason;
      EXPECT_EQ(parity.positions, cached ? 41 : 0);
      EXPECT_EQ(parity.prompt_tokens, cached ? 40 : 0) << "21 from the start, 20 after the prompt";
      EXPECT_EQ(parity.largest, 0.0);
    }
  }
}

TEST(DecodeParity, ShortSequencesAreReadWhole) {
  const DecodeParity parity = decode_parity(model_of(small_experiment("full")), random_tokens(1, 5, 256, 1)[0], {});
  EXPECT_EQ(parity.positions, 5 + 4);
  EXPECT_EQ(parity.prompt_tokens, 1);
  EXPECT_TRUE(parity.exact());
  const DecodeParity one = decode_parity(model_of(small_experiment("full")), random_tokens(1, 1, 256, 1)[0], {});
  EXPECT_EQ(one.positions, 1);
}

TEST(DecodeParity, EncoderDecodersReadTheirSource) {
  for (const ContentCase& each : pairs_cases()) {
    const DecodeParity parity = decode_parity(model_of(each.config), random_tokens(1, 30, 40, 1)[0],
                                              {.source = random_tokens(1, 24, 40, 2)[0]});
    if (!parity.reason.empty()) continue;
    EXPECT_TRUE(parity.exact()) << each.name;
    EXPECT_EQ(parity.positions, 30) << each.name;
  }
  EXPECT_TRUE(decode_parity(model_of(small_pairs_experiment("full")), random_tokens(1, 30, 40, 1)[0],
                            {.source = random_tokens(1, 24, 40, 2)[0]})
                  .exact());
  EXPECT_NE(message_of<InputError>([] {
              decode_parity(model_of(small_pairs_experiment("full")), random_tokens(1, 30, 40, 1)[0], {});
            }).find("reads a source"),
            std::string::npos);
}

}  // namespace
}  // namespace routing::decode_parity_test
