#include "command_line.h"
#include "commands.h"
#include "output.h"
#include "routing/core/error.h"
#include "routing/data/byte_corpus.h"
#include "routing/data/split.h"
#include "routing/evaluation/byte_likelihood.h"
#include "routing/model/weights.h"
#include "routing/training/learner.h"
#include "routing/training/run_directory.h"
#include "training_display.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace routing {
namespace {

struct EvalOptions {
  std::string run;
  std::string checkpoint = "best";
  std::string data;
  std::string split = "test";
  std::string precision;
  std::int64_t sequence_length = 0;
  std::int64_t stride = 0;
  std::int64_t batch_size = 0;
  std::int64_t limit_bytes = 0;
  bool json = false;
};

// A run's folder, a checkpoint's folder, or the model file itself.
std::filesystem::path model_file(const EvalOptions& options) {
  const std::filesystem::path path(options.run);
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) return path;
  if (std::filesystem::is_regular_file(path / "model.safetensors", ignored)) return path / "model.safetensors";
  return RunDirectory(path).find_checkpoint(options.checkpoint).model();
}

SplitBounds chosen_part(const EvalOptions& options, const CorpusSplit& split, std::int64_t bytes) {
  return options.split == "all" ? SplitBounds{0, bytes} : part_named(split, options.split);
}

Precision precision_of(const EvalOptions& options, const ExperimentConfig& config) {
  if (options.precision.empty()) return config.train.precision;
  return parse_precision(options.precision);
}

int run(const EvalOptions& options, const ProgramOptions& program) {
  const std::filesystem::path path = model_file(options);
  Transformer model = load_model(path);
  const ExperimentConfig& config = model->config();
  const std::string data = options.data.empty() ? config.data.path : options.data;
  require<ConfigError>(!data.empty(), path.string(), ": names no data; give a file with --data FILE");
  const ByteCorpus corpus(data);
  const SplitBounds bounds = chosen_part(options, split_corpus(config.data.split, corpus.size(), data), corpus.size());
  require<ConfigError>(bounds.size() > 0, data, ": the ", options.split, " part is empty under data.split ",
                       config.data.split, "; choose another --split, or --split all for the whole file");
  TrainingDisplay display(program.quiet);
  const Likelihood likelihood = byte_likelihood(
      *model, corpus.part(bounds),
      {.sequence_length = options.sequence_length > 0 ? options.sequence_length : config.train.sequence_length,
       .stride = options.stride > 0 ? options.stride : config.eval.stride,
       .batch_size = options.batch_size > 0 ? options.batch_size : config.eval.batch_size,
       .limit_bytes = options.limit_bytes,
       .precision = matmul_precision(precision_of(options, config)),
       .progress = [&](std::int64_t done, std::int64_t all) { display.evaluation_progress(done, all); }});
  display.finish();
  const std::string validity = validity_label(config);
  const double entropy = smallest_occupancy_entropy(likelihood.routing);
  if (options.json) {
    nlohmann::ordered_json object{{"model", path.string()},
                                  {"data", data},
                                  {"split", options.split},
                                  {"bytes", likelihood.bytes},
                                  {"eval_loss_nats", likelihood.nats_per_byte()},
                                  {"bits_per_byte", likelihood.bits_per_byte()},
                                  {"sequence_length", likelihood.sequence_length},
                                  {"stride", likelihood.stride},
                                  {"windows", likelihood.windows},
                                  {"validity", validity}};
    if (!likelihood.routing.empty()) object["occupancy_entropy_min"] = entropy;
    std::cout << object << "\n";
    return kDone;
  }
  const bool disjoint = likelihood.stride == likelihood.sequence_length;
  std::vector<std::pair<std::string, std::string>> lines{
      {"bits/byte", fixed_digits(likelihood.bits_per_byte(), 4) + "   " + validity},
      {"nats/byte", fixed_digits(likelihood.nats_per_byte(), 4)},
      {"text", std::to_string(likelihood.bytes) + " bytes, " + (options.limit_bytes > 0 ? "the first of the " : "") +
                   options.split + " part of " + data},
      {"windows",
       std::to_string(likelihood.windows) + " of " + std::to_string(likelihood.sequence_length) +
           (disjoint ? " bytes, disjoint" : " bytes, " + std::to_string(likelihood.stride) + " new in each")},
      {"model", path.string()}};
  if (!likelihood.routing.empty()) {
    lines.emplace_back("occupancy",
                       "entropy at least " + fixed_digits(entropy, 3) + " of log(clusters) in every routed head");
  }
  print_pairs(lines, 11);
  return kDone;
}

}  // namespace

Command add_eval(CLI::App& program, const ProgramOptions& program_options) {
  const auto options = std::make_shared<EvalOptions>();
  CLI::App* app = program.add_subcommand("eval",
                                         "Bits per byte of a trained model\n\n"
                                         "Predicts every byte of the split exactly once, in windows of the training "
                                         "length; RUN is the folder of a run, of\n"
                                         "one of its checkpoints, or a model.safetensors.");
  app->add_option("RUN", options->run, "what to evaluate")->required()->group("Model");
  app->add_option("--checkpoint", options->checkpoint, "which checkpoint of a run: best, last, or a step")
      ->type_name("WHICH")
      ->capture_default_str()
      ->group("Model");
  app->add_option("--data", options->data, "text; default: what the model was trained on")
      ->type_name("FILE")
      ->group("Text");
  app->add_option("--split", options->split, "train, valid, test, or all for the whole file")
      ->type_name("PART")
      ->check(CLI::IsMember({"train", "valid", "test", "all"}))
      ->capture_default_str()
      ->group("Text");
  app->add_option("--limit-bytes", options->limit_bytes, "only the first so many bytes of the part")
      ->type_name("N")
      ->check(whole_number(1))
      ->group("Text");
  app->add_option("--stride", options->stride, "new bytes a window, the rest is context; default: disjoint windows")
      ->type_name("N")
      ->check(whole_number(1))
      ->group("Windows");
  app->add_option("--sequence-length", options->sequence_length, "bytes a window; default: as trained")
      ->type_name("N")
      ->check(whole_number(1))
      ->group("Windows");
  app->add_option("--batch-size", options->batch_size, "windows at once; changes speed and memory only")
      ->type_name("N")
      ->check(whole_number(1))
      ->group("Windows");
  app->add_option("--precision", options->precision, "of matrix products: fp32, bf16 or auto; default: as trained")
      ->type_name("P")
      ->group("Windows");
  app->add_flag("--json", options->json, "print the result as JSON")->disable_flag_override()->group("Output");
  app->footer("Example  routing eval runs/first --split test --stride 512\n" + exit_code_line());
  return {app, [options, &program_options] { return run(*options, program_options); }};
}

}  // namespace routing
