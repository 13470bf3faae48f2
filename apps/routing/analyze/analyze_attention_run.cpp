#include "analyze/analyze_options.h"
#include "analyze/attention_text.h"
#include "inputs/run_data.h"
#include "inputs/run_model.h"
#include "lab/figures/sequence_figure.h"
#include "lab/heads/head_reading.h"
#include "lab/heads/token_text.h"
#include "routing/core/error.h"
#include "routing/core/files.h"
#include "shell/engine.h"
#include "shell/json_text.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace routing {
namespace {

// The tokens that the model is run over, and how to read them.
struct Subject {
  std::vector<std::int32_t> ids = {};
  AttentionText text = {};
  std::string origin = {};
  std::int64_t image_width = 0;  // 0 for text
};

std::string given_text(const AttentionOptions& options) {
  if (options.text_given) return options.text;
  if (!options.file.empty()) return read_file(options.file);
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

std::string origin_of(const AttentionOptions& options) {
  if (options.text_given) return "--text";
  return options.file.empty() ? "standard input" : options.file;
}

Subject subject_of_text(const AttentionOptions& options, const RunModel& run) {
  const ExperimentConfig& config = run.model->config();
  require<ConfigError>(config.model.image_height == 0, run.path.string(),
                       ": reads images, not text; choose one with --split and --offset, or --data");
  Subject subject{.origin = origin_of(options)};
  const std::unique_ptr<Tokenizer> tokenizer = model_tokenizer(run.path, config, options.model.vocabulary);
  tokenizer->encode(given_text(options), subject.ids);
  require<ConfigError>(!subject.ids.empty(), subject.origin, ": there is no token in the text; give a longer one");
  subject.text.tokens = token_texts(*tokenizer, subject.ids);
  return subject;
}

Subject subject_of_data(const AttentionOptions& options, const RunModel& run, bool quiet) {
  const ExperimentConfig& config = run.model->config();
  const std::unique_ptr<Dataset> data = open_run_data(options.model, run, quiet);
  const std::int64_t record = data->facts().record_length();
  const std::int64_t usual = record > 0 ? record : config.train.sequence_length;
  const at::Tensor tokens = stretch_of(*data, options.model, options.num_tokens > 0 ? options.num_tokens : usual);
  Subject subject{.origin = data->path().filename().string() + ", " + options.model.split + " part, " +
                            (record > 0 ? "image " : "from token ") + std::to_string(options.model.offset)};
  for (std::int64_t i = 0; i < tokens.size(1); ++i) {
    subject.ids.push_back(static_cast<std::int32_t>(tokens.data_ptr<std::int64_t>()[i]));
  }
  if (data->facts().is_image()) {
    subject.image_width = config.model.image_width;
    subject.text.image = true;
    for (std::size_t i = 0; i < subject.ids.size(); ++i) {
      subject.text.tokens.push_back(
          {.shown = "", .label = image_token_label(static_cast<std::int64_t>(i), subject.image_width)});
    }
  } else {
    subject.text.tokens = token_texts(*data->tokenizer(), subject.ids);
  }
  return subject;
}

// The position that was asked about: the token that is predicted. Of a text there is one more, after its end.
std::int64_t chosen_position(const AttentionOptions& options, const Subject& subject, const RunModel& run) {
  const auto size = static_cast<std::int64_t>(subject.ids.size());
  const std::int64_t last = subject.image_width > 0 ? size - 1 : size;
  if (!options.find.empty()) {
    require<ConfigError>(subject.image_width == 0, run.path.string(),
                         ": reads images, in which --find finds no text; give a --position");
    const std::unique_ptr<Tokenizer> tokenizer =
        model_tokenizer(run.path, run.model->config(), options.model.vocabulary);
    const std::int64_t found = find_in_tokens(*tokenizer, subject.ids, options.find);
    require<ConfigError>(found >= 0, subject.origin, ": '", options.find, "' is not in its ", size, " tokens");
    return found;
  }
  if (options.position == kNotGiven) return last;
  require<ConfigError>(options.position <= last, subject.origin, ": there is no position ", options.position,
                       "; it has ", size, " tokens, so positions are 0 to ", last,
                       subject.image_width > 0 ? "" : ", the last being the token that would come next");
  return options.position;
}

// Of a text one more position is run than it has tokens, so that the last token is read too. What stands there is not
// read by anything.
at::Tensor model_input(const Subject& subject) {
  const auto size = static_cast<std::int64_t>(subject.ids.size());
  at::Tensor tokens = at::zeros({1, subject.image_width > 0 ? size : size + 1}, at::kLong);
  std::copy(subject.ids.begin(), subject.ids.end(), tokens.data_ptr<std::int64_t>());
  return tokens;
}

// The head of the picture: the first routed one of the topmost layer that has some; the last head if none is.
const HeadReading& drawn_head(const std::vector<HeadReading>& readings) {
  const HeadReading* chosen = nullptr;
  for (const HeadReading& reading : readings) {
    if (reading.routed && (chosen == nullptr || reading.layer > chosen->layer)) chosen = &reading;
  }
  return chosen == nullptr ? readings.back() : *chosen;
}

SequenceFigure figure_of(const Subject& subject, const ModelProbes& probes, const HeadReading& reading,
                         const std::string& name) {
  const bool image = subject.image_width > 0;
  SequenceFigure figure{.title = name + ": layer " + std::to_string(reading.layer) + " head " +
                                 std::to_string(reading.head) + ", " + reading.pattern,
                        .caption = subject.origin + "; predicts " + (image ? "" : "token ") +
                                   (image ? "" : std::to_string(subject.text.position) + " ") +
                                   quoted_label(subject.text, subject.text.position) + " and reads " +
                                   std::to_string(reading.reads.size()) + " before it",
                        .cells = {},
                        .first = image ? 0 : kStart,
                        .image_width = subject.image_width,
                        .values = {}};
  if (image) figure.values.assign(subject.ids.begin(), subject.ids.end());
  const std::vector<std::vector<std::int32_t>> clusters = token_clusters(probes, reading.layer, reading.head);
  const auto size = static_cast<std::int64_t>(subject.ids.size());
  // A text has a cell for the start and, if it is asked about, one after its end.
  const std::int64_t first = figure.first;
  const std::int64_t end = std::max(size, subject.text.position + 1);
  for (std::int64_t token = first; token < end; ++token) {
    const bool is_token = token >= 0 && token < size;
    SequenceCell cell{.text = is_token ? drawable_label(subject.text.tokens[static_cast<std::size_t>(token)])
                                       : label_of(subject.text, token),
                      .asked = token == subject.text.position};
    const auto carrier = static_cast<std::size_t>(token + 1);
    if (carrier < clusters.size() && token < size) cell.clusters = clusters[carrier];
    figure.cells.push_back(std::move(cell));
  }
  for (const ReadToken& read : reading.reads) {
    if (read.token >= first) figure.cells[static_cast<std::size_t>(read.token - first)].weight = read.weight;
  }
  return figure;
}

void print_json(const AttentionOptions& options, const RunModel& run, const Subject& subject,
                const std::vector<HeadReading>& readings) {
  std::cout << json_text({{"model", run.path.string()},
                          {"text", subject.origin},
                          {"tokens", subject.ids.size()},
                          {"position", subject.text.position},
                          {"predicts", label_of(subject.text, subject.text.position)},
                          {"heads", readings_json(readings, subject.text)},
                          {"written", options.paths}})
            << "\n";
}

void print_text(const AttentionOptions& options, const Subject& subject, const std::vector<HeadReading>& readings) {
  const ColourDepth depth = colour_depth(options.colour, isatty(STDOUT_FILENO) != 0);
  std::cout << subject.origin << ": " << subject.ids.size() << " tokens; position " << subject.text.position
            << " predicts " << quoted_label(subject.text, subject.text.position) << "\n";
  for (const HeadReading& reading : readings) {
    std::cout << "\n" << reading_heading(reading) << "\n";
    if (depth != ColourDepth::none && subject.image_width == 0) {
      std::cout << coloured_text(reading, subject.text, depth);
    }
    std::cout << top_lines(reading, subject.text);
  }
  for (const std::string& path : options.paths) std::cout << path << "\n";
}

}  // namespace

int run_analyze_attention(const AttentionOptions& options, const ProgramOptions& program) {
  for (const std::string& path : options.paths) figure_format(path);
  RunModel model = load_run_model(options.model, "analyze attention");
  const ExperimentConfig& config = model.model->config();
  Subject subject =
      options.has_text() ? subject_of_text(options, model) : subject_of_data(options, model, program.quiet);
  subject.text.position = chosen_position(options, subject, model);
  subject.text.top = static_cast<std::size_t>(options.top);
  const ModelProbes probes =
      model.model->probe(model_input(subject), {.precision = chosen_precision(options.model.precision, config)});
  ReadingQuestion question{.token = subject.text.position};
  if (options.layer != kNotGiven) question.layer = options.layer;
  if (options.head != kNotGiven) question.head = options.head;
  const std::vector<HeadReading> readings = read_heads(probes, question);
  for (const std::string& path : options.paths) {
    write_sequence_figure(figure_of(subject, probes, drawn_head(readings), config.name), path);
  }
  if (options.json) {
    print_json(options, model, subject, readings);
  } else {
    print_text(options, subject, readings);
  }
  return kDone;
}

}  // namespace routing
