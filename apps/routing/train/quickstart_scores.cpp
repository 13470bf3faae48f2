#include "train/quickstart_scores.h"

#include "routing/data/compressors.h"
#include "routing/data/dataset.h"
#include "routing/data/tokenizers/byte_tokenizer.h"
#include "routing/evaluation/likelihood.h"
#include "routing/evaluation/token_likelihood.h"
#include "routing/generation/generate.h"
#include "routing/model/weights.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

namespace routing {
namespace {

// A fixed number, so that figures of different machines are of the same bytes. One core with AVX2 reads as many in five
// seconds through quickstart-small, so half a minute is enough for much slower ones.
constexpr std::int64_t kScoredBytes = 250000;
constexpr std::int64_t kSampleBytes = 300;

// What the model writes after the beginning of a part: temperature 1, nucleus 0.8, seed 1.
std::string sample_of(const Transformer& model, TokenView part) {
  std::vector<std::vector<std::int32_t>> prompts(1);
  prompts.front().resize(static_cast<std::size_t>(std::min(kPromptBytes, part.size())));
  part.copy(0, std::span(prompts.front()));
  const auto decoder = make_decoder(model.ptr(), {.precision = matmul_precision(model->config().train.precision)});
  const GenerateOptions options{.sampling = {.temperature = 1.0, .top_p = 0.8, .seed = 1},
                                .max_new_tokens = kSampleBytes};
  return ByteTokenizer().decode(generate(*decoder, prompts, options).front().tokens);
}

RatioInterval bits_of(SequenceModel& model, TokenView bytes, const ExperimentConfig& config, TrainingDisplay& display) {
  std::vector<double> bits_of_window;
  std::vector<double> bytes_of_window;
  token_likelihood(model, bytes,
                   {.sequence_length = config.train.sequence_length,
                    .stride = config.eval.stride,
                    .batch_size = config.eval.batch_size,
                    .precision = matmul_precision(config.train.precision),
                    .progress = [&](std::int64_t done, std::int64_t all) { display.evaluation_progress(done, all); },
                    .scored =
                        [&](const ScoredWindow& window) {
                          const auto scored = window.nats.subspan(static_cast<std::size_t>(window.scored_from));
                          bits_of_window.push_back(bits(std::accumulate(scored.begin(), scored.end(), 0.0)));
                          bytes_of_window.push_back(static_cast<double>(scored.size()));
                        }});
  display.finish();
  return ratio_interval(bits_of_window, bytes_of_window);
}

}  // namespace

QuickstartScores quickstart_scores(const ExperimentConfig& config, const RunDirectory& run, TrainingDisplay& display) {
  const ByteCorpus corpus(config.data.path);
  const std::span<const std::uint8_t> test =
      corpus.part(split_corpus(config.data.split, corpus.size(), config.data.path).test);
  const auto scored = test.first(std::min(test.size(), static_cast<std::size_t>(kScoredBytes)));
  display.say("evaluating on " + std::to_string(scored.size()) + " bytes that training never saw");
  Transformer model = load_model(run.find_checkpoint("best").model());
  return {.bytes = static_cast<std::int64_t>(scored.size()),
          .bits_per_byte = bits_of(*model, scored, config, display),
          .gzip = gzip_bits_per_byte(scored),
          .xz = xz_bits_per_byte(scored),
          .data_label = Dataset(config.data).facts().label(),
          .sample = sample_of(model, test)};
}

}  // namespace routing
