#include "analyze/analyze_options.h"
#include "commands.h"
#include "inputs/run_files.h"
#include "shell/engine.h"
#include "shell/options.h"
#include "shell/usage_error.h"

#include <memory>
#include <string>

namespace routing {
namespace {

void require_one_source(const AttentionOptions& options, const CLI::App& app) {
  const int texts = (options.text_given ? 1 : 0) + (options.file.empty() ? 0 : 1) + (options.standard_input ? 1 : 0);
  bool data = false;
  for (const char* name : {"--data", "--split", "--offset", "--n"}) data = data || app.count(name) > 0;
  if (texts + (data ? 1 : 0) > 1) {
    throw UsageError("analyze attention: the text was given more than once",
                     "give one of --text, --file, - for standard input, or data by --data, --split, --offset and --n");
  }
}

void add_text_options(CLI::App& app, AttentionOptions& options) {
  OptionGroup text(app, "Text");
  text.add({"TEXT", "-: read the text from standard input", {"-"}}, options.dash);
  text.add({"--text TEXT", "the text itself"}, options.text);
  text.add({"--file FILE", "a file that holds the text"}, options.file);
  OptionGroup data(app, "Data");
  data.add({"--offset N", "of data: first token; of images, the number of the image"}, options.model.offset,
           whole_number(0));
  data.add({"--n N", "tokens of data; default: as trained"}, options.num_tokens, whole_number(1));
}

void add_question_options(CLI::App& app, AttentionOptions& options) {
  OptionGroup question(app, "Question");
  question.add({"--position I", "the token that is predicted; default: the one after the text"}, options.position,
               whole_number(0));
  question.add({"--find STRING", "instead: the token in which this text begins"}, options.find);
  question.add({"--layer L", "only this layer, from 0; default: all"}, options.layer, whole_number(0));
  question.add({"--head H", "only this head of a layer, from 0; default: all"}, options.head, whole_number(0));
  question.add({"--top K", "tokens to list for each head"}, options.top, whole_number(1, 1000000));
}

void add_output_options(CLI::App& app, AttentionOptions& options) {
  OptionGroup output(app, "Output");
  output.add({"--out FILE", "picture of the sequence and its clusters, .png or .svg; may be repeated"}, options.paths);
  output.add({"--color WHEN", "auto, always or never; NO_COLOR and pipes mean never"}, options.colour,
             one_of({"auto", "always", "never"}));
  output.flag({"--json", "print everything that is read as JSON"}, options.json);
}

}  // namespace

Command add_analyze_attention(CLI::App& analyze, const ProgramOptions& program) {
  const auto options = std::make_shared<AttentionOptions>();
  CLI::App* app = add_command(
      analyze, "attention",
      "Which earlier tokens each head reads at a position, and with what weight\n\n"
      "Position I is the prediction of token I: a head reads tokens up to I - 1 and, as token -1, the start. The\n"
      "picture shows every token in the colours of its clusters: of --head and --layer, or of the topmost routed "
      "head.",
      "routing analyze attention runs/first --text 'to be or not to' --layer 3 --out read.png");
  OptionGroup model(*app, "Model");
  model.add({"RUN", "folder of a run or checkpoint, or a model.safetensors"}, options->model.run)->required();
  add_model_options(*app, options->model);
  add_text_options(*app, *options);
  add_data_options(*app, options->model);
  add_question_options(*app, *options);
  add_output_options(*app, *options);
  return {app, [options, app, &program] {
            options->text_given = app->count("--text") > 0;
            if (app->count("--position") > 0 && app->count("--find") > 0) {
              throw UsageError("analyze attention: --position and --find were both given", "give one of them");
            }
            if (!options->dash.empty() && options->dash != "-") {
              throw UsageError("analyze attention: unexpected argument '" + options->dash + "'",
                               "give the text with --text TEXT, or - to read it from standard input");
            }
            options->standard_input = options->dash == "-" || options->file == "-";
            if (options->file == "-") options->file.clear();
            require_one_source(*options, *app);
            model_file(options->model.run, options->model.checkpoint);  // says at once what is missing
            return engine(program).analyze_attention(*options, program);
          }};
}

}  // namespace routing
