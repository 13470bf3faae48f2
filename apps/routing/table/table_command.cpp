#include "commands.h"
#include "shell/engine.h"
#include "shell/options.h"
#include "shell/usage_error.h"
#include "table/table_options.h"

#include <memory>

namespace routing {
namespace {

void add_run_options(CLI::App& app, TableCommandOptions& options) {
  OptionGroup run_group(app, "Run");
  run_group.add({"--out DIR", "folder of the table: runs, results and the table itself"}, options.out);
  run_group.add({"--data PATH", "file or folder of the data set"}, options.data);
  run_group.add({"--scale SCALE", "tiny for two cores, or paper; default: as begun, or tiny", {"tiny", "paper"}},
                options.scale);
  run_group.add({"--rows LIST", "ids, numbers, ranges, best:K: local,4,6-9,best:2; default: all"}, options.rows);
  run_group.add({"--seeds LIST", "a run of every row for each"}, options.seeds);
  run_group.add({"--part I/N", "this process takes every N-th run, from the I-th"}, options.part);
  run_group.add({"--steps N", "of every row; default: as begun, or as the presets say"}, options.steps,
                whole_number(1));
  run_group.add({"--minutes M", "of training per part: equal steps for all rows, decided once"}, options.minutes,
                CLI::PositiveNumber);
  run_group.add(
      {"--selection WORD", "of routed rows: balanced, nearest or threshold", {"balanced", "nearest", "threshold"}},
      options.selection);
  run_group.add({"--set KEY=VALUE", "change one configuration key of every row; may be repeated"}, options.settings);
}

}  // namespace

Command add_table(CLI::App& program, const ProgramOptions& program_options) {
  const auto options = std::make_shared<TableCommandOptions>();
  CLI::App* app = add_command(
      program, "table",
      "Train and evaluate the rows of a table of the paper\n\n"
      "Writes table.md, table.csv, table.png and table.svg to --out, our figures beside the paper's. Stopped and\n"
      "started again it goes on; what is done is not done again. Two processes may share a folder with --part 1/2\n"
      "and --part 2/2. From several machines, put the files of DIR/results into one folder and use --report.",
      "routing table cifar10-ablation --data cifar10 --out runs/table1 --rows "
      "local,full,routing-h4-l8-w512");
  // Only the engine has the tables themselves; a test compares.
  OptionGroup(*app, "Options")
      .add({"NAME",
            "which table; --list shows them",
            {"cifar10-ablation", "wikitext103", "enwik8", "imagenet64", "pg19", "step-time", "shared-qk", "jsd", "leak",
             "recall", "text"}},
           options->name);
  add_run_options(*app, *options);
  OptionGroup output(*app, "Output");
  output.flag({"--report", "run nothing; write the table of the results there are"}, options->report);
  output.flag({"--list", "list the tables, or the rows of NAME with their numbers, and stop"}, options->list);
  output.flag(kJsonFlag, options->json);
  return {app, [options, &program_options] {
            if (!options->list && options->name.empty()) {
              throw UsageError("table: which one?", "routing table --list  shows all");
            }
            return engine(program_options).table(*options, program_options);
          }};
}

}  // namespace routing
