#include "commands.h"
#include "eval/eval_options.h"
#include "inputs/run_files.h"
#include "routing/core/error.h"
#include "shell/engine.h"
#include "shell/options.h"

#include <memory>

namespace routing {
namespace {

void add_data_options(CLI::App& app, EvalOptions& options) {
  OptionGroup data(app, "Data");
  data.add_paths(kDataOption, options.data);
  data.add(kVocabularyOption, options.vocabulary);
  data.add(
      {"--split PART", "train, valid, test, or all of data in one piece; default: test, and all of a foreign file"},
      options.split, one_of({"train", "valid", "test", "all"}));
  data.add({"--limit-tokens,--limit-bytes N", "only the first N tokens of the part"}, options.limit_tokens,
           whole_number(1));
  data.flag(kRequireWholeFlag, options.require_whole);
  data.add(
      {"--subwords-per-word R", "perplexity per word by the authors' rule, 1.248 for PG-19; default: by counted words"},
      options.subwords_per_word, CLI::PositiveNumber);
}

void add_window_options(CLI::App& app, EvalOptions& options) {
  OptionGroup windows(app, "Windows");
  windows.add({"--stride N", "new tokens per window, the rest is context; default: as trained, eval.stride"},
              options.stride, whole_number(1));
  windows.add({"--memory N", "tokens that layers remember of the windows before; default: as trained, eval.memory"},
              options.memory, whole_number(1));
  windows.add({"--sequence-length N", "tokens per window; default: as trained"}, options.sequence_length,
              whole_number(1));
  windows.add({"--batch-size N", "windows at once; changes speed and memory only"}, options.batch_size,
              whole_number(1));
  windows.add(kPrecisionOption, options.precision);
}

void add_recurrence_options(CLI::App& app, EvalOptions& options) {
  OptionGroup recurrence(app, "Recurrence");
  recurrence.flag({"--by-recurrence",
                   "also by how far back the tokens before a target last occurred, with 95 % intervals over windows"},
                  options.by_recurrence);
  recurrence.add({"--context N", "tokens before a target; default: 8, of words and subwords 2"}, options.context,
                 whole_number(1));
  recurrence.add({"--reach N", "what counts as near; default: the sum of the local windows of all layers"},
                 options.reach, whole_number(1));
}

void add_comparison_options(CLI::App& app, EvalOptions& options) {
  OptionGroup comparison(app, "Position and comparison");
  comparison.flag(
      {"--by-position",
       "each path of --data as one sequence: also by the position in it, with 95 % intervals over sequences"},
      options.by_position);
  comparison.add({"--against RUN2", "by recurrence or position: another run on the same, and differences in pairs"},
                 options.against);
}

void refuse_what_contradicts(const EvalOptions& options) {
  require<ConfigError>(options.by_recurrence || (options.context == 0 && options.reach == 0),
                       "--context and --reach are for --by-recurrence; give that too");
  require<ConfigError>(options.by_recurrence || options.by_position || options.against.empty(),
                       "--against is for --by-recurrence and --by-position; give one of them too");
  const int looks = (options.by_recurrence ? 1 : 0) + (options.by_position ? 1 : 0) + (options.nats.empty() ? 0 : 1);
  require<ConfigError>(looks <= 1, "--nats, --by-recurrence and --by-position are ways to look at single tokens; give ",
                       "one of them");
  require<ConfigError>(
      !options.by_position || (options.sequence_length == 0 && options.stride == 0 && options.memory == 0),
      "--by-position reads each path of --data as one sequence; leave out --sequence-length, --stride and --memory");
  require<ConfigError>(options.split_sequence || options.ranks.count == 1, "--ranks is ", options.ranks.count,
                       ", but the ranks of an evaluation are for --split-sequence; give that too");
}

}  // namespace

Command add_eval(CLI::App& program, const ProgramOptions& program_options) {
  const auto options = std::make_shared<EvalOptions>();
  CLI::App* app = add_command(program, "eval",
                              "Bits per byte, bits per dim or perplexity of a trained model\n\n"
                              "Predicts every token of the split exactly once, in windows of the training "
                              "length; RUN is the folder of a run, of\n"
                              "one of its checkpoints, or a model.safetensors.",
                              "routing eval runs/first --split test --stride 512");
  OptionGroup model(*app, "Model");
  model.add({"RUN", "what to evaluate"}, options->run)->required();
  model.add(kCheckpointOption, options->checkpoint);
  add_data_options(*app, *options);
  add_window_options(*app, *options);
  add_recurrence_options(*app, *options);
  add_comparison_options(*app, *options);
  OptionGroup ranks(*app, "Ranks");
  ranks.flag({"--split-sequence", "split every window over the ranks: for windows that one process does not hold"},
             options->split_sequence);
  add_rank_options(ranks, options->ranks,
                   "each read a piece of every window; the figures are those of one, to the bit");
  OptionGroup output(*app, "Output");
  output.flag(kJsonFlag, options->json);
  output.add({"--nats FILE", "also what every token cost: a line of JSON per window with tokens and nats"},
             options->nats);
  return {app, [options, &program_options] {
            refuse_what_contradicts(*options);
            refuse_two_sets_of_ranks(options->ranks);
            model_file(options->run, options->checkpoint);  // says at once what is missing
            return engine(program_options).eval(*options, program_options);
          }};
}

}  // namespace routing
