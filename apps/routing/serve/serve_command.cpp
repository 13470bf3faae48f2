#include "commands.h"
#include "routing/core/error.h"
#include "routing/serving/http/http_server.h"
#include "routing/serving/http/tokens.h"
#include "serve/page/run_catalog.h"
#include "serve/serve_options.h"
#include "shell/engine.h"
#include "shell/options.h"
#include "shell/usage_error.h"

#include <memory>

namespace routing {
namespace {

constexpr std::int64_t kMostPort = 65535;
constexpr std::int64_t kMostMebibytes = std::int64_t{1} << 24;

void add_network_options(CLI::App& app, ServeOptions& options) {
  OptionGroup network(app, "Network");
  network.add({"--port N", "0 takes a free one and says which"}, options.port, whole_number(0, kMostPort));
  network.add({"--host IP", "address to listen at; others than this machine's own need --token-file"}, options.host);
  network.add({"--token-file FILE", "clients must show one of its lines: Authorization: Bearer TOKEN"},
              options.token_file);
  network.add({"--cors ORIGIN", "pages of this origin may ask too, * for all; may be repeated"}, options.origins);
  network.add({"--name HOST", "a name by which clients call this machine; may be repeated"}, options.names);
  network.add({"--connections N", "at a time"}, options.connections, whole_number(1, 1000000));
}

void add_model_options(CLI::App& app, ServeOptions& options) {
  OptionGroup model(app, "Models");
  model.add(kCheckpointOption, options.checkpoint);
  model.add(kPrecisionOption, options.precision);
  model.add({"--models N", "loaded at a time; another takes the place of the one used longest ago"}, options.models,
            whole_number(1));
  model.add({"--prefix-cache MIB", "for the beginnings of prompts that were read already; 0: none"},
            options.prefix_cache, whole_number(0, kMostMebibytes));
  model.add({"--prefill-block N", "tokens of a prompt that are read between two steps of the others"},
            options.prefill_block, whole_number(1));
  model.add({"--analysis-cache MIB", "for texts whose attention was looked at"}, options.probe_cache,
            whole_number(0, kMostMebibytes));
}

void add_limit_options(CLI::App& app, ServeOptions& options) {
  OptionGroup limits(app, "Limits");
  limits.add({"--sequences N", "decoded side by side"}, options.quota.sequences, whole_number(1, 4096));
  limits.add({"--queue N", "sequences that may wait; beyond them the answer is 429"}, options.quota.waiting,
             whole_number(0, 1000000));
  limits.add({"--queue-tokens N", "tokens of all requests, prompts and max_tokens together"}, options.quota.tokens,
             whole_number(1));
  limits.add({"--max-tokens N", "tokens of one request, the same"}, options.quota.tokens_per_request, whole_number(1));
  limits.add({"--request-seconds S", "time for one request, waiting included"}, options.request_seconds,
             CLI::PositiveNumber);
  limits.add({"--body-limit MIB", "of one request"}, options.body_limit, whole_number(1, 1024));
}

// What is wrong is said before anything is loaded.
void check(const ServeOptions& options) {
  const RunCatalog catalog({options.runs.begin(), options.runs.end()});
  bool is_loopback = false;
  try {
    is_loopback = http::is_loopback(options.host);
  } catch (const InputError& error) {
    throw UsageError("--host " + options.host + ": " + error.what(), "give an address in digits, such as 127.0.0.1");
  }
  if (!options.token_file.empty()) {
    http::read_tokens(options.token_file);
  } else if (!is_loopback) {
    throw UsageError("--host " + options.host + " can be reached from other machines, but there is no --token-file",
                     "write a secret of 16 letters or more into a file only you can read, and name it");
  }
}

}  // namespace

Command add_serve(CLI::App& program, const ProgramOptions& program_options) {
  const auto options = std::make_shared<ServeOptions>();
  CLI::App* app =
      add_command(program, "serve",
                  "Answer completions over HTTP, and show a page: text, attention, trainings\n\n"
                  "RUN is the folder of a run, or a folder with runs below it; new ones are found while they "
                  "train. The API is that of\nOpenAI's completions: docs/server.md.",
                  "routing serve runs/quickstart");
  OptionGroup what(*app, "What");
  what.add({"RUN", "runs, or folders of runs"}, options->runs)->required();
  add_network_options(*app, *options);
  add_model_options(*app, *options);
  add_limit_options(*app, *options);
  return {app, [options, &program_options] {
            check(*options);
            return engine(program_options).serve(*options, program_options);
          }};
}

}  // namespace routing
