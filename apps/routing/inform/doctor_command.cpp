#include "commands.h"
#include "inform/inform_options.h"
#include "shell/engine.h"
#include "shell/options.h"

#include <memory>

namespace routing {

Command add_doctor(CLI::App& program, const ProgramOptions& options) {
  const auto given = std::make_shared<DoctorOptions>();
  CLI::App* app = add_command(
      program, "doctor",
      "Look for what makes this machine slow, and say what to do\n\n"
      "Checks the BLAS, threads, AMX, vector instructions and memory; takes about a second. Each line is\n"
      "ok, warning (slower than it could be) or problem (fix it).\n"
      "Exit code 0 says that the checks ran, whatever they found; \"problems\" in the JSON counts the bad ones.",
      "routing doctor");
  OptionGroup(*app, "Output").flag(kJsonFlag, given->json);
  return {app, [given, &options] { return engine(options).doctor(*given, options); }};
}

}  // namespace routing
