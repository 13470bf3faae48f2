// Whoever else is in the batch, whatever was read before, and whatever is cancelled: the bits of generate() alone.
#include "faulty_decoder.h"
#include "heard_completions.h"
#include "routing/core/random.h"
#include "routing/generation/completion_batch.h"
#include "routing/model/transformer.h"
#include "support/segments.h"
#include "support/small_experiment.h"
#include "support/thread_guard.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace routing::completion_bits_test {
namespace {

using Ids = std::vector<std::int32_t>;

// Every kind of heads of decoder-only models, those that re-run prefixes and one that remembers among them.
std::vector<ContentCase> all_cases() {
  std::vector<ContentCase> cases = content_cases();
  ExperimentConfig memory = memory_experiment("routing", 20, 28);
  memory.eval.memory = 36;
  cases.push_back({"memory", memory});
  for (ContentCase& each : cases) each.config.model.initial_scale = 3.0;
  return cases;
}

// What some user may ask: of prompts that often begin alike, some of them long.
CompletionRequest random_request(RandomStream& random, const Decoder& decoder) {
  // A repetition penalty has no logits of tokens that are not known.
  const auto vocabulary = static_cast<std::uint32_t>(decoder.vocabulary_size() - 3);
  const std::uint64_t base = random.below(4);
  RandomStream text(base, "bases of prompts");
  Ids prompt(random.below(4) == 0 ? random.below(150) : random.below(60));
  for (std::int32_t& token : prompt) token = static_cast<std::int32_t>(text.below(vocabulary));
  for (std::uint32_t more = random.below(3) * random.below(12); more > 0; --more) {
    prompt.push_back(static_cast<std::int32_t>(random.below(vocabulary)));
  }
  constexpr std::int64_t kSamples = 3;
  return {.prompt = prompt,
          .sampling = {.temperature = random.below(4) == 0 ? 0.0 : 1.0 + random.uniform(),
                       .top_k = random.below(3) == 0 ? 5 : 0,
                       .top_p = random.below(2) == 0 ? 1.0 : 0.7,
                       .min_p = random.below(3) == 0 ? 0.01 : 0.0,
                       .repetition_penalty = random.below(3) == 0 ? 1.4 : 1.0,
                       .seed = random.below(5)},
          .max_new_tokens = 1 + static_cast<std::int64_t>(random.below(24)),
          .samples = 1 + static_cast<std::int64_t>(random.below(kSamples)),
          .end_token = random.below(2) == 0 ? static_cast<std::int32_t>(random.below(vocabulary)) : -1,
          .known_tokens = random.below(4) == 0 ? vocabulary : 0,
          .first_sample = random.below(3)};
}

struct Case {
  MatmulPrecision precision = MatmulPrecision::fp32;
  int threads = 1;
  BatchLimits limits = {};
  std::uint64_t seed = 0;
};

// Requests come at random rounds, and some are cancelled at random rounds, also while their prompts are read.
void expect_bits_of_generate(const ContentCase& content, const Case& chosen) {
  const std::string what = content.name + ", seed " + std::to_string(chosen.seed) + ", threads " +
                           std::to_string(chosen.threads) + ", request ";
  const auto model = Transformer(content.config, at::TensorOptions().dtype(at::kFloat)).ptr();
  const DecoderOptions options{.precision = chosen.precision, .prefill_block = 32};
  const auto reference = make_decoder(model, options);
  FaultyDecoder decoder(make_decoder(model, options));
  RandomStream random(chosen.seed, "requests");
  struct Expected {
    AskedCompletion asked = {};
    std::vector<Sample> samples = {};
    bool cancelled = false;
  };
  std::vector<Expected> all;
  {
    CompletionBatch batch(decoder, chosen.limits);
    int to_come = 18;
    int to_cancel = 7;
    while (to_come > 0 || batch.facts().waiting + batch.facts().reading + batch.facts().active > 0) {
      if (to_come > 0 && random.below(3) == 0) {
        --to_come;
        const CompletionRequest request = random_request(random, decoder);
        all.push_back({.asked = ask(batch, request), .samples = alone(*reference, request)});
      }
      if (!all.empty() && to_cancel > 0 && random.below(12) == 0) {
        --to_cancel;
        Expected& gone = all[random.below(static_cast<std::uint32_t>(all.size()))];
        gone.cancelled = gone.cancelled || !gone.asked.heard->is_done();
        batch.cancel(gone.asked.number);
      }
      batch.advance();
      ASSERT_LE(batch.facts().places, chosen.limits.sequences);
      ASSERT_LE(batch.facts().prefixes.bytes, chosen.limits.prefix_cache.bytes);
    }
    EXPECT_EQ(batch.facts().places, 0) << what;
    EXPECT_EQ(batch.facts().failed, 0) << what;
    EXPECT_EQ(decoder.sequences(), batch.facts().prefixes.snapshots) << what;
  }
  EXPECT_EQ(decoder.sequences(), 0) << what;
  int finished = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Expected& each = all[i];
    if (!each.cancelled) {
      expect_equal(each.samples, *each.asked.heard, what + std::to_string(i));
      ++finished;
      continue;
    }
    // What it heard before is the beginning.
    for (std::size_t sample = 0; sample < each.samples.size(); ++sample) {
      const Ids& heard = each.asked.heard->samples[sample].tokens;
      const Ids& expected = each.samples[sample].tokens;
      ASSERT_LE(heard.size(), expected.size()) << what << i;
      EXPECT_TRUE(std::equal(heard.begin(), heard.end(), expected.begin())) << what << i;
    }
  }
  EXPECT_GE(finished, 6) << what;
}

TEST(CompletionBits, ThoseOfGenerateForEveryKindOfHeadsWhoeverComesAndGoes) {
  const support::ThreadGuard guard;
  std::uint64_t seed = 1;
  for (const ContentCase& content : all_cases()) {
    for (const MatmulPrecision precision : {MatmulPrecision::fp32, MatmulPrecision::bf16}) {
      for (const int threads : {1, 3}) {
        set_num_threads(threads);
        // Few places or many, small blocks or large, no snapshots, a few, or all there are.
        const std::int64_t blocks[] = {1, 10, 40, 512};
        const std::int64_t bytes[] = {0, 30'000, 100'000'000};
        const BatchLimits limits{.sequences = seed % 2 == 0 ? 4 : 16,
                                 .prefill_block = blocks[seed % 4],
                                 .prefix_cache = {.bytes = bytes[seed % 3], .least_tokens = 1}};
        expect_bits_of_generate(content, {precision, threads, limits, seed});
        ++seed;
      }
    }
  }
}

}  // namespace
}  // namespace routing::completion_bits_test
