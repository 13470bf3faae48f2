// Text, and the symbols of encoder-decoders.
#include "commands.h"
#include "generate/generate_job.h"
#include "generate/generate_output.h"
#include "inputs/run_model.h"
#include "routing/data/tasks/sequence_tasks.h"
#include "routing/distributed/rank_pieces.h"
#include "routing/generation/beam_search.h"
#include "routing/generation/text_stream.h"
#include "shell/command_line.h"
#include "shell/interrupts.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace routing {
namespace {

// A model that reads numbers writes numbers: the space before the first one is not wanted.
std::string without_first_space(std::string piece, const std::string& before, const Tokenizer& tokenizer) {
  if (tokenizer.kind() == "symbols" && before.empty() && piece.starts_with(' ')) piece.erase(0, 1);
  return piece;
}

// The samples of one batch while they come.
class TextBatch {
 public:
  struct Parts {
    const GenerateJob& job;
    const Tokenizer& tokenizer;
    const Prompt& prompt;
    SamplePrinter& printer;
    GenerationReport& report;
  };
  TextBatch(const Parts& parts, std::int64_t first, std::int64_t count) : parts_(parts) {
    for (std::int64_t i = 0; i < count; ++i) {
      streams_.emplace_back(parts.tokenizer, parts.job.arguments.stops);
      samples_.push_back({.number = first + i});
    }
  }

  // A TokenListener.
  bool take(std::size_t place, const TokenDraw& draw, std::span<const float> logits) {
    const GenerateArguments& arguments = parts_.job.arguments;
    TextSample& sample = samples_[place];
    sample.tokens.push_back(draw.token);
    const auto before = parts_.job.reads_source() ? 0 : static_cast<std::int64_t>(parts_.prompt.ids.size());
    parts_.report.token(before + static_cast<std::int64_t>(sample.tokens.size()));
    sample.draws.push_back(draw);
    // Not before: a prompt that cannot be read leaves no output.
    if (parts_.printer.streams() && sample.tokens.size() == 1) parts_.printer.begin(sample.number);
    if (arguments.alternatives > 0) sample.alternatives.push_back(most_likely(logits, arguments.alternatives));
    add_text(place, streams_[place].add(draw.token));
    if (parts_.printer.streams() && arguments.logprobs) {
      parts_.printer.write_token(draw,
                                 arguments.alternatives > 0 ? sample.alternatives.back() : std::vector<TokenDraw>());
    }
    sample.seconds = parts_.report.seconds();
    sample.seconds_to_first_token = parts_.report.seconds_to_first_token();
    return !streams_[place].stopped() && !InterruptGuard::requested();
  }

  void finish(const std::vector<Sample>& generated, const Decoder& decoder) {
    for (std::size_t place = 0; place < samples_.size(); ++place) {
      TextSample& sample = samples_[place];
      add_text(place, streams_[place].finish());
      sample.stop_reason = streams_[place].stopped()                      ? "stop text"
                           : generated[place].stop == StopReason::stopped ? "interrupted"
                                                                          : to_string(generated[place].stop);
      if (!parts_.printer.streams()) parts_.printer.write(sample, decoder);
    }
  }

 private:
  void add_text(std::size_t place, std::string piece) {
    TextSample& sample = samples_[place];
    piece = without_first_space(std::move(piece), sample.text, parts_.tokenizer);
    sample.text += piece;
    if (parts_.printer.streams() && !parts_.job.arguments.logprobs) parts_.printer.write_piece(piece);
  }

  Parts parts_;
  std::vector<TextStream> streams_;
  std::vector<TextSample> samples_;
};

// One of the ranks that read the prompt for the last one: once for each batch of its samples, or for its beams.
int read_prompts(const GenerateJob& job, const Prompt& prompt, Decoder& decoder) {
  const GenerateOptions options = job.options();
  const std::int64_t batches =
      job.arguments.beams > 0 ? 1 : (options.samples_per_prompt + options.batch_size - 1) / options.batch_size;
  for (std::int64_t batch = 0; batch < batches; ++batch) decoder.drop(decoder.begin(prompt.ids).sequence);
  return kDone;
}

int sample_text(const TextBatch::Parts& parts, GenerateOptions options, Decoder& decoder) {
  const InterruptGuard interrupts;
  const std::vector<std::vector<std::int32_t>> prompts{parts.prompt.ids};
  const std::int64_t all = options.samples_per_prompt;
  for (std::int64_t first = 0; first < all && !InterruptGuard::requested(); first += options.batch_size) {
    options.samples_per_prompt = std::min(options.batch_size, all - first);
    options.first_sample = static_cast<std::uint64_t>(first);
    parts.report.begin_batch();
    TextBatch batch(parts, first, options.samples_per_prompt);
    try {
      const std::vector<Sample> samples = generate(
          decoder, prompts, options, [&](std::size_t place, const TokenDraw& draw, std::span<const float> logits) {
            return batch.take(place, draw, logits);
          });
      batch.finish(samples, decoder);
    } catch (const Interrupted&) {
      if (first == 0) throw;
    }
  }
  if (parts.printer.streams()) parts.printer.end();
  return InterruptGuard::requested() ? kInterrupted : kDone;
}

// Nothing is written before the end, so Ctrl-C may end the program as it does others.
int search_text(const TextBatch::Parts& parts, const GenerateOptions& options, Decoder& decoder) {
  parts.report.begin_batch();
  const std::vector<Hypothesis> found = beam_search(decoder, parts.prompt.ids,
                                                    {.beams = parts.job.arguments.beams,
                                                     .max_new_tokens = options.max_new_tokens,
                                                     .end_token = options.end_token,
                                                     .known_tokens = options.known_tokens,
                                                     .length_penalty = parts.job.arguments.length_penalty});
  const double seconds = parts.report.seconds();
  const auto before = parts.job.reads_source() ? 0 : static_cast<std::int64_t>(parts.prompt.ids.size());
  for (std::size_t i = 0; i < found.front().tokens.size(); ++i) {
    parts.report.token(before + static_cast<std::int64_t>(i) + 1);
  }
  const auto wanted = std::min(found.size(), static_cast<std::size_t>(options.samples_per_prompt));
  for (std::size_t place = 0; place < wanted; ++place) {
    const Hypothesis& best = found[place];
    parts.printer.write({.number = static_cast<std::int64_t>(place),
                         .tokens = best.tokens,
                         .text = without_first_space(parts.tokenizer.decode(best.tokens), "", parts.tokenizer),
                         .stop_reason = best.ended ? "end" : "length",
                         .seconds = seconds,
                         .hypothesis = best},
                        decoder);
  }
  return kDone;
}

// <eos> of words ends a line, not the text, so it ends no sample.
std::int64_t end_token(const GenerateJob& job, const Tokenizer& tokenizer) {
  return job.arguments.ignore_end || tokenizer.kind() == "words" ? -1 : tokenizer.end_id();
}

std::unique_ptr<Tokenizer> tokenizer_of(const GenerateJob& job) {
  if (!job.reads_source()) return model_tokenizer(job.path, job.config(), job.arguments.vocabulary);
  refuse_given(job.arguments, {"--vocabulary", "--stop", "--echo"},
               "is for text, but " + job.path.string() + " holds an encoder-decoder of symbols");
  return std::make_unique<SymbolText>(job.config().model.vocab_size);
}

}  // namespace

int generate_text(const GenerateJob& job, Prompt prompt) {
  refuse_given(job.arguments, {"--image", "--complete-split", "--out", "--force"},
               "is for images, but " + job.path.string() + " holds a model of text");
  const std::unique_ptr<Tokenizer> tokenizer = tokenizer_of(job);
  const auto say = [&](const std::string& line) { job.say(line); };
  encode_prompt(prompt, *tokenizer, say);
  if (job.reads_source() && !prompt.given) {
    throw UsageError(job.path.string() + ": holds an encoder-decoder, which needs a source",
                     "give one with --prompt-ids 3,17,5");
  }
  GenerationReport report;
  std::optional<RankPieces> pieces;
  if (job.ranks != nullptr) pieces.emplace(*job.ranks);
  const std::unique_ptr<Decoder> decoder = job.decoder(report, pieces ? &*pieces : nullptr);
  if (job.only_reads()) return read_prompts(job, prompt, *decoder);
  GenerateOptions options = job.options();
  options.end_token = end_token(job, *tokenizer);
  options.known_tokens = tokenizer->vocabulary_size();
  if (!job.arguments.has("--max-new-tokens")) {
    options.max_new_tokens = job.reads_source() ? job.config().train.sequence_length : GenerateOptions().max_new_tokens;
  }
  SamplePrinter printer(job, *tokenizer, prompt);
  const TextBatch::Parts parts{job, *tokenizer, prompt, printer, report};
  const int exit_code =
      job.arguments.beams > 0 ? search_text(parts, options, *decoder) : sample_text(parts, options, *decoder);
  job.say_summary(report, *decoder, static_cast<std::int64_t>(prompt.ids.size()));
  return exit_code;
}

}  // namespace routing
