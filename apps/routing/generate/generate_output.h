// Samples of text on standard output: as text, as a line per token, or as JSON.
#pragma once

#include "generate/generate_job.h"
#include "routing/data/tokenizers/tokenizer.h"
#include "routing/generation/beam_search.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace routing {

// A sample that has ended.
struct TextSample {
  std::int64_t number = 0;  // from 0; names its random stream
  std::vector<std::int32_t> tokens = {};
  std::vector<TokenDraw> draws = {};                      // empty for beams
  std::vector<std::vector<TokenDraw>> alternatives = {};  // of each token, where asked for
  std::string text = {};
  std::string stop_reason = {};
  double seconds = 0.0;  // from the beginning of its batch
  double seconds_to_first_token = 0.0;
  std::optional<Hypothesis> hypothesis = std::nullopt;  // of beams
};

class SamplePrinter {
 public:
  // All must outlive the printer.
  SamplePrinter(const GenerateJob& job, const Tokenizer& tokenizer, const Prompt& prompt)
      : job_(&job), tokenizer_(&tokenizer), prompt_(&prompt) {}

  // A single sample is written while it comes, unless it is JSON.
  bool streams() const { return job_->arguments.num_samples == 1 && !job_->arguments.json; }

  // The parts of a sample that is not JSON: a header if there are several, and the prompt if it is wanted; pieces of
  // text or tokens; a line end.
  void begin(std::int64_t number);
  void write_piece(const std::string& text);
  void write_token(const TokenDraw& draw, const std::vector<TokenDraw>& alternatives);
  void end();

  // All of a sample that was not streamed.
  void write(const TextSample& sample, const Decoder& decoder);

 private:
  void write_json(const TextSample& sample, const Decoder& decoder);

  const GenerateJob* job_;
  const Tokenizer* tokenizer_;
  const Prompt* prompt_;
  bool line_is_open_ = false;
};

}  // namespace routing
