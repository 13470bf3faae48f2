#include "generate/generate_job.h"

#include "inputs/run_model.h"
#include "shell/interrupts.h"
#include "shell/json_text.h"

#include <iostream>

namespace routing {

void GenerateJob::say(const std::string& line) const {
  if (!quiet) std::cerr << "routing: " << line << "\n";
}

std::unique_ptr<Decoder> GenerateJob::decoder(GenerationReport& report, PieceExchange* pieces) const {
  const auto progress = [&report](std::int64_t tokens_read, std::int64_t tokens) {
    report.prompt_progress(tokens_read, tokens);
    if (InterruptGuard::requested()) throw Interrupted();
  };
  std::unique_ptr<Decoder> made = make_decoder(model, {.precision = chosen_precision(arguments.precision, config()),
                                                       .prefill_block = arguments.prefill_block,
                                                       .allow_cache = !arguments.no_cache,
                                                       .memory_limit = arguments.memory_limit << 20,
                                                       .progress = progress,
                                                       .pieces = pieces});
  if (!made->reason().empty()) say("note: " + made->label() + ": " + made->reason());
  return made;
}

GenerateOptions GenerateJob::options() const {
  return {.sampling = arguments.sampling,
          .max_new_tokens = arguments.max_new_tokens,
          .samples_per_prompt = arguments.num_samples,
          .batch_size = arguments.batch_size};
}

void GenerateJob::say_summary(const GenerationReport& report, const Decoder& decoder,
                              std::int64_t prompt_tokens) const {
  const std::string note = note_of_length(config(), report.longest());
  if (!note.empty()) say(note);
  std::string labels = decoder.label() + ", " + validity_label(config());
  if (!notes.data_label.empty()) labels += ", " + notes.data_label;
  say(report.summary(prompt_tokens, labels));
}

void GenerateJob::add_facts(nlohmann::ordered_json& object, const Decoder& decoder) const {
  const SamplingOptions& sampling = arguments.sampling;
  if (arguments.beams == 0) {
    object["seed"] = sampling.seed;
    object["sampling"] = {{"temperature", sampling.temperature},
                          {"top_k", sampling.top_k},
                          {"top_p", sampling.top_p},
                          {"min_p", sampling.min_p},
                          {"repetition_penalty", sampling.repetition_penalty}};
  } else {
    object["beams"] = arguments.beams;
    object["length_penalty"] = arguments.length_penalty;
  }
  object["label"] = decoder.label();
  object["validity"] = validity_label(config());
  if (!notes.data_label.empty()) object["data_label"] = notes.data_label;
  object["model"] = path.string();
}

std::string json_line(const nlohmann::ordered_json& object) {
  return json_text(object) + "\n";
}

}  // namespace routing
