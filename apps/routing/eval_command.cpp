#include "command_line.h"
#include "commands.h"
#include "eval_recall.h"
#include "output.h"
#include "routing/core/error.h"
#include "routing/data/dataset.h"
#include "routing/data/sequence_tasks.h"
#include "routing/evaluation/measures.h"
#include "routing/evaluation/scored_text.h"
#include "routing/evaluation/target_accuracy.h"
#include "routing/evaluation/token_likelihood.h"
#include "routing/model/weights.h"
#include "routing/training/training_data.h"
#include "run_model.h"
#include "training_display.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace routing {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kPairs = 64;  // scored of made-up pairs unless --limit-tokens says otherwise

struct EvalOptions {
  std::string run;
  std::string checkpoint = "best";
  std::string data;
  std::string vocabulary;
  std::string split = "test";
  std::string precision;
  std::int64_t sequence_length = 0;
  std::int64_t stride = 0;
  std::int64_t batch_size = 0;
  std::int64_t limit_tokens = 0;
  double subwords_per_word = 0.0;
  bool require_whole = false;
  bool json = false;
};

OtherData other_data(const EvalOptions& options) {
  return {.path = options.data, .vocabulary = options.vocabulary};
}

DataConfig data_config(const EvalOptions& options, const ExperimentConfig& config, const fs::path& model) {
  DataConfig data = run_data_config(model, config, other_data(options));
  if (options.split == "all") {
    data.split = "100%/0%/0%";
    if (data.vocabulary.empty()) data.vocabulary = kept_tokenizer(model, kind_of(config.data)).string();
  }
  data.require_whole = data.require_whole || options.require_whole;
  return data;
}

// Data that come in one piece are a training part.
std::string part_name(const EvalOptions& options) {
  return options.split == "all" ? "train" : options.split;
}

const DatasetPart& chosen_part(const EvalOptions& options, const Dataset& data) {
  if (options.split != "all") return data.part(part_name(options));
  require<ConfigError>(!data.has("valid") && !data.has("test"), data.path().string(),
                       ": has parts of its own; choose one with --split train, valid or test");
  return data.part(part_name(options));
}

struct Outcome {
  fs::path model;
  std::string validity;
  std::string data_label;
  std::string audit;
  double entropy = 1.0;
  double subwords_per_word = 0.0;
  ScoredTokens scored = {};
};

void print_json(const EvalOptions& options, const Dataset& data, const Likelihood& likelihood,
                const std::vector<Measure>& all, const Outcome& outcome) {
  nlohmann::ordered_json object{{"model", outcome.model.string()},
                                {"data", data.path().string()},
                                {"split", options.split},
                                {"tokens", likelihood.tokens},
                                {"token_kind", to_string(data.facts().tokens)},
                                {"eval_loss_nats", likelihood.nats_per_token()}};
  for (const Measure& measure : all) object[measure.key] = measure.value;
  if (outcome.subwords_per_word > 0.0) object["subwords_per_word"] = outcome.subwords_per_word;
  if (outcome.scored.words > 0) object["words"] = outcome.scored.words;
  if (outcome.scored.bytes > 0) object["bytes"] = outcome.scored.bytes;
  object["sequence_length"] = likelihood.sequence_length;
  object["stride"] = likelihood.stride;
  object["windows"] = likelihood.windows;
  object["validity"] = outcome.validity;
  object["audit"] = outcome.audit;
  if (!outcome.data_label.empty()) object["data_label"] = outcome.data_label;
  if (!data.facts().missing.empty()) object["missing"] = data.facts().missing;
  if (!likelihood.routing.empty()) object["occupancy_entropy_min"] = outcome.entropy;
  std::cout << object << "\n";
}

std::string windows_text(const Likelihood& likelihood, const DataFacts& facts) {
  const std::string text = std::to_string(likelihood.windows) + " of " + std::to_string(likelihood.sequence_length);
  if (facts.is_image()) {
    return likelihood.sequence_length == facts.record_length()
               ? text + " values, an image each"
               : text + " values, the first of an image with " + std::to_string(facts.record_length());
  }
  return text + (likelihood.stride == likelihood.sequence_length
                     ? " tokens, disjoint"
                     : " tokens, " + std::to_string(likelihood.stride) + " new in each");
}

void print_lines(const EvalOptions& options, const Dataset& data, const Likelihood& likelihood,
                 const std::vector<Measure>& all, const Outcome& outcome) {
  const std::string labels =
      outcome.data_label.empty() ? outcome.validity : outcome.validity + ", " + outcome.data_label;
  std::vector<std::pair<std::string, std::string>> lines;
  for (const Measure& measure : all) {
    const bool only_bytes = data.facts().tokens == TokenKind::bytes;
    lines.emplace_back(measure.name, fixed_digits(measure.value, 4) + "   " + labels +
                                         (only_bytes ? "" : "   (" + measure.note + ")"));
  }
  lines.emplace_back("nats/token", fixed_digits(likelihood.nats_per_token(), 4) + "   " + labels);
  lines.emplace_back("data", std::to_string(likelihood.tokens) + " " + std::string(to_string(data.facts().tokens)) +
                                 ", " + (options.limit_tokens > 0 ? "the first of the " : "the ") + options.split +
                                 " part of " + data.path().string());
  if (!data.facts().missing.empty()) lines.emplace_back("partial", data.facts().missing);
  lines.emplace_back("windows", windows_text(likelihood, data.facts()));
  lines.emplace_back("model", outcome.model.string());
  lines.emplace_back("audit", outcome.audit);
  if (!likelihood.routing.empty()) {
    lines.emplace_back(
        "occupancy", "entropy at least " + fixed_digits(outcome.entropy, 3) + " of log(clusters) in every routed head");
  }
  print_pairs(lines, 19);
}

// Made-up data: how many targets of pairs, or answers of recall, does the model get right?
int run_made_up(const EvalOptions& options, const ExperimentConfig& config, const fs::path& path) {
  require<ConfigError>(options.data.empty() && options.split != "all", path.string(), ": was trained on made-up data, ",
                       "of which every part is endless; leave out --data, and choose --split train, valid or test");
  require<ConfigError>(options.stride == 0, path.string(), ": was trained on made-up data, which come in whole ",
                       "sequences; leave out --stride");
  if (config.data.format == DataFormat::recall) {
    const std::int64_t length = options.sequence_length > 0 ? options.sequence_length : config.train.sequence_length;
    const std::int64_t sequences = std::max<std::int64_t>(1, options.limit_tokens / length);
    return eval_recall({.model = path,
                        .split = options.split,
                        .sequences = options.limit_tokens > 0 ? sequences : kPairs,
                        .batch_size = options.batch_size > 0 ? options.batch_size : config.eval.batch_size,
                        .sequence_length = length,
                        .precision = chosen_precision(options.precision, config),
                        .json = options.json},
                       config);
  }
  const SequencePairs pairs(sequence_task_options(config));
  const std::int64_t of_a_pair = pairs.options().longest + 1;
  EncoderDecoder model = load_encoder_decoder(path);
  const TargetScore score = score_pairs(
      *model, pairs,
      {.part = options.split,
       .pairs = options.limit_tokens > 0 ? std::max<std::int64_t>(1, options.limit_tokens / of_a_pair) : kPairs,
       .batch_size = options.batch_size > 0 ? options.batch_size : config.eval.batch_size,
       .precision = chosen_precision(options.precision, config)});
  const std::string validity = validity_label(config);
  if (options.json) {
    std::cout << nlohmann::ordered_json{{"model", path.string()},
                                        {"data", to_string(config.data.format)},
                                        {"split", options.split},
                                        {"tokens", score.tokens},
                                        {"eval_loss_nats", score.nats_per_token()},
                                        {"accuracy", score.accuracy()},
                                        {"sequence_length", of_a_pair},
                                        {"validity", validity},
                                        {"audit", audit_text(load_model_notes(path))}}
              << "\n";
    return kDone;
  }
  print_pairs({{"accuracy", fixed_digits(score.accuracy(), 5) + "   " + validity},
               {"nats/token", fixed_digits(score.nats_per_token(), 5)},
               {"data", std::to_string(score.tokens) + " targets in sequences of " + std::to_string(of_a_pair) + ", " +
                            std::string(to_string(config.data.format)) + ", part " + options.split},
               {"model", path.string()},
               {"audit", audit_text(load_model_notes(path))}},
              12);
  return kDone;
}

int run(const EvalOptions& options, const ProgramOptions& program) {
  const fs::path path = model_file(options.run, options.checkpoint);
  if (const ExperimentConfig pairs = load_model_config(path); is_made_up(pairs.data.format)) {
    return run_made_up(options, pairs, path);
  }
  Transformer model = load_model(path);
  const ExperimentConfig& config = model->config();
  require<ConfigError>(!options.data.empty() || !config.data.path.empty(), path.string(),
                       ": names no data; give some with --data PATH");
  TrainingDisplay display(program.quiet);
  const Dataset data(data_config(options, config, path),
                     {.train_needed = is_own_data(other_data(options), config),
                      .notes = [&](const std::string& line) { display.say(line); }});
  const ModelNotes notes = load_model_notes(path);
  require_tokens_of_run(path, data);
  fitted_to(config, data.facts());
  const DatasetPart& part = chosen_part(options, data);
  const Likelihood likelihood = token_likelihood(
      *model, part.tokens,
      {.sequence_length = options.sequence_length > 0 ? options.sequence_length : config.train.sequence_length,
       .stride = options.stride > 0 ? options.stride : config.eval.stride,
       .batch_size = options.batch_size > 0 ? options.batch_size : config.eval.batch_size,
       .limit_tokens = std::min(options.limit_tokens, part.tokens.size()),
       .record_length = data.facts().record_length(),
       .precision = chosen_precision(options.precision, config),
       .progress = [&](std::int64_t done, std::int64_t all) { display.evaluation_progress(done, all); }});
  display.finish();
  const double rule = options.subwords_per_word > 0.0 ? options.subwords_per_word : config.eval.subwords_per_word;
  const ScoredTokens counted = scored_text(likelihood, data, part_name(options));
  const std::vector<Measure> all = measures(data.facts().tokens, counted, rule);
  const Outcome outcome{.model = path,
                        .validity = validity_label(config),
                        .data_label = notes.data_label.empty() ? data.facts().label() : notes.data_label,
                        .audit = audit_text(notes),
                        .entropy = smallest_occupancy_entropy(likelihood.routing),
                        .subwords_per_word = rule,
                        .scored = counted};
  if (options.json) {
    print_json(options, data, likelihood, all, outcome);
  } else {
    print_lines(options, data, likelihood, all, outcome);
  }
  return kDone;
}

void add_data_options(CLI::App& app, EvalOptions& options) {
  app.add_option("--data", options.data, "file or folder; default: what the model was trained on")
      ->type_name("PATH")
      ->group("Data");
  app.add_option("--vocabulary", options.vocabulary, "of words or subwords; default: the one the run keeps")
      ->type_name("FILE")
      ->group("Data");
  app.add_option("--split", options.split, "train, valid, test, or all of data that come in one piece")
      ->type_name("PART")
      ->check(CLI::IsMember({"train", "valid", "test", "all"}))
      ->capture_default_str()
      ->group("Data");
  app.add_option("--limit-tokens,--limit-bytes", options.limit_tokens, "only the first so many tokens of the part")
      ->type_name("N")
      ->check(whole_number(1))
      ->group("Data");
  app.add_flag("--require-whole", options.require_whole, "refuse a part of a data set instead of labelling its figures")
      ->disable_flag_override()
      ->group("Data");
  app.add_option("--subwords-per-word", options.subwords_per_word,
                 "perplexity a word by the authors' rule, 1.248 for PG-19; default: by counted words")
      ->type_name("R")
      ->check(CLI::PositiveNumber)
      ->group("Data");
}

void add_window_options(CLI::App& app, EvalOptions& options) {
  app.add_option("--stride", options.stride,
                 "new tokens a window, the rest is context; default: as trained, eval.stride")
      ->type_name("N")
      ->check(whole_number(1))
      ->group("Windows");
  app.add_option("--sequence-length", options.sequence_length, "tokens a window; default: as trained")
      ->type_name("N")
      ->check(whole_number(1))
      ->group("Windows");
  app.add_option("--batch-size", options.batch_size, "windows at once; changes speed and memory only")
      ->type_name("N")
      ->check(whole_number(1))
      ->group("Windows");
  app.add_option("--precision", options.precision, "of matrix products: fp32, bf16 or auto; default: as trained")
      ->type_name("P")
      ->group("Windows");
}

}  // namespace

Command add_eval(CLI::App& program, const ProgramOptions& program_options) {
  const auto options = std::make_shared<EvalOptions>();
  CLI::App* app = program.add_subcommand("eval",
                                         "Bits per byte, bits per dim or perplexity of a trained model\n\n"
                                         "Predicts every token of the split exactly once, in windows of the training "
                                         "length; RUN is the folder of a run, of\n"
                                         "one of its checkpoints, or a model.safetensors.");
  app->add_option("RUN", options->run, "what to evaluate")->required()->group("Model");
  app->add_option("--checkpoint", options->checkpoint, "which checkpoint of a run: best, last, or a step")
      ->type_name("WHICH")
      ->capture_default_str()
      ->group("Model");
  add_data_options(*app, *options);
  add_window_options(*app, *options);
  app->add_flag("--json", options->json, "print the result as JSON")->disable_flag_override()->group("Output");
  app->footer("Example  routing eval runs/first --split test --stride 512\n" + exit_code_line());
  return {app, [options, &program_options] { return run(*options, program_options); }};
}

}  // namespace routing
