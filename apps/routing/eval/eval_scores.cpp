#include "eval/eval_position.h"
#include "eval/eval_recall.h"
#include "eval/eval_recurrence.h"
#include "eval/eval_run.h"
#include "eval/nats_file.h"
#include "inputs/piped_data.h"
#include "inputs/run_model.h"
#include "ranks/rank_launcher.h"
#include "ranks/rank_process.h"
#include "routing/core/error.h"
#include "routing/data/formats.h"
#include "routing/data/tasks/sequence_tasks.h"
#include "routing/distributed/state_check.h"
#include "routing/evaluation/measures.h"
#include "routing/evaluation/scored_text.h"
#include "routing/evaluation/target_accuracy.h"
#include "routing/evaluation/token_likelihood.h"
#include "routing/model/weights.h"
#include "shell/engine.h"
#include "shell/output.h"
#include "train/training_display.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fmt/core.h>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace routing {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kPairs = 64;  // scored of made-up pairs unless --limit-tokens says otherwise

struct Outcome {
  fs::path model;
  std::string validity;
  std::string data_label;
  std::string audit;
  double entropy = 1.0;
  double subwords_per_word = 0.0;
  ScoredTokens scored = {};
  int ranks = 1;
};

std::string windows_text(const Likelihood& likelihood, const DataFacts& facts) {
  const std::string text = std::to_string(likelihood.windows) + " of " + std::to_string(likelihood.sequence_length);
  if (facts.is_image()) {
    return likelihood.sequence_length == facts.record_length()
               ? text + " values, an image each"
               : text + " values, the first of an image with " + std::to_string(facts.record_length());
  }
  return text + (likelihood.stride == likelihood.sequence_length
                     ? likelihood.memory > 0 ? " tokens, one after the other, each with a memory of " +
                                                   std::to_string(likelihood.memory) + " before it"
                                             : std::string(" tokens, disjoint")
                     : " tokens, " + std::to_string(likelihood.stride) + " new in each");
}

Report report_of(const EvalOptions& options, const Dataset& data, const Likelihood& likelihood,
                 const std::vector<Measure>& all, const Outcome& outcome) {
  const std::string& missing = data.facts().missing;
  const std::string& label = outcome.data_label;
  const std::string labels = label.empty() ? outcome.validity : outcome.validity + ", " + label;
  const std::string kind(to_string(data.facts().tokens));
  const double nats = likelihood.nats_per_token();
  Report report;
  report.fact("model", outcome.model.string()).fact("data", data.path().string()).fact("split", options.split);
  report.fact("tokens", likelihood.tokens).fact("token_kind", kind).fact("eval_loss_nats", nats);
  for (const Measure& measure : all) {
    const std::string note = data.facts().tokens == TokenKind::bytes ? "" : "   (" + measure.note + ")";
    report.fact(measure.key, measure.value);
    report.line(measure.name, fmt::format("{}   {}{}", fixed_digits(measure.value, 4), labels, note));
  }
  if (outcome.subwords_per_word > 0.0) report.fact("subwords_per_word", outcome.subwords_per_word);
  if (outcome.scored.words > 0) report.fact("words", outcome.scored.words);
  if (outcome.scored.bytes > 0) report.fact("bytes", outcome.scored.bytes);
  report.line("nats/token", fixed_digits(nats, 4) + "   " + labels);
  report.line("data", std::to_string(likelihood.tokens) + " " + kind + ", " +
                          (options.limit_tokens > 0 ? "the first of the " : "the ") + options.split + " part of " +
                          data.path().string());
  if (!missing.empty()) report.line("partial", missing);
  report.fact("sequence_length", likelihood.sequence_length).fact("stride", likelihood.stride);
  if (likelihood.memory > 0) report.fact("memory", likelihood.memory);
  report.fact("windows", likelihood.windows);
  report.line("windows", options.by_position
                             ? std::to_string(likelihood.windows) + ", each all of a path, the longest of " +
                                   std::to_string(likelihood.sequence_length) + " tokens"
                             : windows_text(likelihood, data.facts()));
  if (outcome.ranks > 1) {
    report.fact("ranks", outcome.ranks).fact("bytes_sent", likelihood.bytes_sent);
    report.line("ranks", std::to_string(outcome.ranks) + ", each with a piece of every window; rank 0 sent " +
                             fixed_digits(static_cast<double>(likelihood.bytes_sent) / (1 << 20), 2) +
                             " MiB and waited " + fixed_digits(likelihood.waiting_seconds, 1) + " s");
  }
  report.fact("validity", outcome.validity).line("model", outcome.model.string());
  report.fact("audit", outcome.audit).line("audit", outcome.audit);
  if (!label.empty()) report.fact("data_label", label);
  if (!missing.empty()) report.fact("missing", missing);
  if (!likelihood.routing.empty()) {
    report.fact("occupancy_entropy_min", outcome.entropy);
    report.line("occupancy",
                "entropy at least " + fixed_digits(outcome.entropy, 3) + " of log(clusters) in every routed head");
  }
  return report;
}

std::optional<NatsFile> nats_file_of(const EvalOptions& options) {
  return options.nats.empty() ? std::nullopt : std::make_optional<NatsFile>(fs::path(options.nats));
}

// What writes windows into the file, if there is one.
std::function<void(const ScoredWindow&)> into(std::optional<NatsFile>& file) {
  if (!file) return {};
  return [&file](const ScoredWindow& window) { file->add(window); };
}

// Made-up data: how many targets of pairs, or answers of recall, does the model get right?
int run_made_up(const EvalOptions& options, const ExperimentConfig& config, const fs::path& path) {
  require<ConfigError>(!options.split_sequence, path.string(),
                       ": was trained on made-up data, whose sequences are read ", "whole; leave out --split-sequence");
  require<ConfigError>(options.data.empty() && options.split != "all", path.string(), ": was trained on made-up data, ",
                       "of which every part is endless; leave out --data, and choose --split train, valid or test");
  require<ConfigError>(options.stride == 0, path.string(), ": was trained on made-up data, which come in whole ",
                       "sequences; leave out --stride");
  if (config.data.format == DataFormat::recall) {
    require<ConfigError>(options.nats.empty(), path.string(), ": was trained on the recall task, whose answers are ",
                         "shown by their distance; --nats is for models of data and of pairs");
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
  std::optional<NatsFile> nats_file = nats_file_of(options);
  const TargetScore score = score_pairs(
      *model, pairs,
      {.part = options.split,
       .pairs = options.limit_tokens > 0 ? std::max<std::int64_t>(1, options.limit_tokens / of_a_pair) : kPairs,
       .batch_size = options.batch_size > 0 ? options.batch_size : config.eval.batch_size,
       .precision = chosen_precision(options.precision, config),
       .scored = into(nats_file)});
  if (nats_file) nats_file->commit();
  const std::string validity = validity_label(config);
  const std::string format(to_string(config.data.format));
  const std::string audit = audit_text(load_model_notes(path));
  Report report;
  report.fact("model", path.string()).fact("data", format).fact("split", options.split).fact("tokens", score.tokens);
  report.fact("eval_loss_nats", score.nats_per_token()).fact("accuracy", score.accuracy());
  report.fact("sequence_length", of_a_pair).fact("validity", validity).fact("audit", audit);
  report.line("accuracy", fixed_digits(score.accuracy(), 5) + "   " + validity);
  report.line("nats/token", fixed_digits(score.nats_per_token(), 5));
  report.line("data", std::to_string(score.tokens) + " targets in sequences of " + std::to_string(of_a_pair) + ", " +
                          format + ", part " + options.split);
  report.line("model", path.string()).line("audit", audit);
  report.print(options.json, 12);
  return kDone;
}

fs::path decoder_only_file(const EvalOptions& options, const std::string& run) {
  fs::path path = model_file(run, options.checkpoint);
  const DataFormat format = load_model_config(path).data.format;
  require<ConfigError>(!is_made_up(format), path.string(), ": was trained on made-up data (", to_string(format),
                       "), whose answers are known by their distance; --by-recurrence and --by-position are for "
                       "models of real data");
  return path;
}

RecurrenceResult evaluate_by_recurrence(const EvalOptions& options, const EvalRun& run, TrainingDisplay& display,
                                        Likelihood& likelihood) {
  RecurrenceResult result{.options = recurrence_options(options, run)};
  const auto classes = [&](std::vector<WindowRecurrence>& windows) {
    return [&](const ScoredWindow& window) { windows.push_back(window_recurrence(window, result.options)); };
  };
  if (options.against.empty()) {
    likelihood = evaluate(options, run, display, classes(result.windows));
    return result;
  }
  // Opened before the first is evaluated, so that what cannot be compared is refused at once.
  result.against = decoder_only_file(options, options.against);
  const EvalRun other = open_eval_run(options, result.against, display);
  require_same_windows(options, run, other);
  result.other_validity = validity_label(other.config());
  likelihood = evaluate(options, run, display, classes(result.windows));
  evaluate(options, other, display, classes(result.other_windows));
  return result;
}

int run_eval_here(const EvalOptions& given, const ProgramOptions& program, const EvalRank& rank) {
  EvalOptions options = given;
  const fs::path path = options.by_recurrence || options.by_position ? decoder_only_file(options, options.run)
                                                                     : model_file(options.run, options.checkpoint);
  const ExperimentConfig trained = load_model_config(path);
  const PassingData passing(options.data);
  options.data = passing.paths();
  options.cache = passing.cache("");
  if (options.split.empty()) options.split = usual_split(options, trained, path);
  if (is_made_up(trained.data.format)) return run_made_up(options, trained, path);
  const bool leads = rank.group == nullptr || rank.group->leads();
  TrainingDisplay display(program.quiet || !leads);
  const EvalRun evaluated = open_eval_run(options, path, display, rank);
  const ExperimentConfig& config = evaluated.config();
  const Dataset& data = *evaluated.data;
  const ModelNotes notes = load_model_notes(path);
  if (rank.group != nullptr) {
    Transformer model = evaluated.model;
    check_same_model(*rank.group, *model, 0);
    rank.group->status().enter(RankPhase::computing);
  }
  const LikelihoodOptions asked = eval_windows(options, evaluated);
  const std::string note = note_of_length(config, std::min(asked.sequence_length, tokens_to_read(options, evaluated)));
  if (!note.empty()) display.say(note);
  Likelihood likelihood;
  RecurrenceResult recurrence;
  PositionResult positions;
  if (options.by_position) {
    const fs::path against = options.against.empty() ? fs::path() : decoder_only_file(options, options.against);
    positions = evaluate_by_position(options, path, against, display, rank, likelihood);
  } else if (options.by_recurrence) {
    recurrence = evaluate_by_recurrence(options, evaluated, display, likelihood);
  } else {
    std::optional<NatsFile> nats_file = leads ? nats_file_of(options) : std::nullopt;
    likelihood = evaluate(options, evaluated, display, into(nats_file));
    if (nats_file) nats_file->commit();
  }
  if (!leads) return kDone;
  const double rule = options.subwords_per_word > 0.0 ? options.subwords_per_word : config.eval.subwords_per_word;
  const ScoredTokens counted = scored_text(likelihood, data, part_name(options));
  const std::vector<Measure> all = measures(data.facts().tokens, counted, rule);
  const Outcome outcome{.model = path,
                        .validity = validity_label(config),
                        .data_label = notes.data_label.empty() ? data.facts().label() : notes.data_label,
                        .audit = audit_text(notes),
                        .entropy = smallest_occupancy_entropy(likelihood.routing),
                        .subwords_per_word = rule,
                        .scored = counted,
                        .ranks = rank.group == nullptr ? 1 : rank.group->size()};
  Report report = report_of(options, data, likelihood, all, outcome);
  if (options.by_recurrence) report.fact("recurrence", recurrence_json(recurrence, evaluated));
  if (options.by_position) report.fact("positions", positions_json(positions, data.facts().tokens));
  report.print(options.json, 19);
  if (options.by_recurrence && !options.json) print_recurrence(recurrence, evaluated);
  if (options.by_position && !options.json) print_positions(positions, data.facts().tokens);
  return kDone;
}

}  // namespace

int run_eval(const EvalOptions& options, const ProgramOptions& program) {
  const bool starts_ranks = options.ranks.count > 1 && !is_launched();
  if (starts_ranks) {
    require<ConfigError>(PassingData(options.data).paths() == options.data, options.data,
                         ": comes through a pipe, which one process alone can read; write it to a file, or leave out ",
                         "--ranks");
    return launch_ranks({.ranks = options.ranks.count,
                         .timeout = options.ranks.timeout(),
                         .arguments = program.arguments,
                         .quiet = program.quiet});
  }
  const std::optional<RankPlace> place = options.split_sequence ? rank_place() : std::nullopt;
  if (!place || place->size == 1) return run_eval_here(options, program, {});
  return run_as_rank(*place, {.timeout = options.ranks.timeout(), .arguments = program.arguments},
                     [&](const std::shared_ptr<RankGroup>& group, int on_machine) {
                       return run_eval_here(options, program, {.group = group.get(), .on_machine = on_machine});
                     });
}

}  // namespace routing
