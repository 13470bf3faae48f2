#include "commands.h"
#include "routing/core/error.h"
#include "routing/data/sources/byte_corpus.h"
#include "routing/training/run_directory.h"
#include "shell/engine.h"
#include "shell/options.h"
#include "train/quickstart_options.h"
#include "train/quickstart_size.h"

#include <filesystem>
#include <memory>
#include <system_error>

namespace routing {
namespace {

namespace fs = std::filesystem;

void require_readable_data(const QuickstartOptions& options) {
  std::error_code ignored;
  require<ConfigError>(
      options.data != kDefaultCorpus || fs::exists(options.data, ignored), kDefaultCorpus,
      ": is not there; install it with  apt-get install dict-gcide  (make setup does), or name another "
      "text with --data FILE");
  // Unreadable data should not show only after the timing.
  const ByteCorpus corpus(options.data);
}

// A run that is there goes on, or is shown again if it has ended.
void require_possible(const QuickstartOptions& options) {
  if (RunDirectory(options.out).exists()) {
    require<ConfigError>(!options.any_given, options.out,
                         ": holds a run already, which goes on as it was begun; leave out --data, --minutes and --set, "
                         "or choose another --out");
    return;
  }
  require_readable_data(options);
  resolve(quickstart_sources(quickstart_sizes().front().preset, options));
}

}  // namespace

Command add_quickstart(CLI::App& program, const ProgramOptions& program_options) {
  const auto options = std::make_shared<QuickstartOptions>();
  CLI::App* app =
      add_command(program, "quickstart",
                  "Train a small model for a few minutes, evaluate it, draw pictures, sample text\n\n"
                  "Two of its heads are routed, strictly causally. How large it is follows from the speed "
                  "of the machine. The text is\n"
                  "Webster's dictionary (Debian's dict-gcide); on 250,000 bytes of its last 2 MB, which are "
                  "held out, the model is\n"
                  "compared with gzip and xz. Started again, it goes on where it stopped.",
                  "routing quickstart");
  OptionGroup run_group(*app, "Run");
  run_group.add({"--out DIR", "folder of the run"}, options->out);
  run_group.add({"--minutes M", "time for training"}, options->minutes, CLI::PositiveNumber);
  run_group.add({"--data FILE", "another text, at least 4 MB"}, options->data);
  run_group.add(kSettingsOption, options->settings);
  OptionGroup(*app, "Output").flag(kJsonFlag, options->json);
  return {app, [options, app, &program_options] {
            options->any_given = app->count("--data") + app->count("--minutes") + app->count("--set") > 0;
            require_possible(*options);
            return engine(program_options).quickstart(*options, program_options);
          }};
}

}  // namespace routing
