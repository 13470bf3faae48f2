#include "commands.h"
#include "experiment_options.h"
#include "model_facts.h"
#include "output.h"
#include "routing/core/parallel.h"
#include "routing/kernels/cpu_features.h"
#include "system_facts.h"
#include "version.h"

#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace routing {
namespace {

using Json = OrderedJson;

Json gathered_info(const ProgramOptions& options) {
  const BlasFacts blas = blas_facts();
  const MemoryFacts memory = memory_facts();
  Json features = Json::object();
  for (const auto& [name, present] : named_features(cpu_features())) features[std::string(name)] = present;
  Json info;
  info["version"] = program_version();
  info["compiler"] = compiler();
  info["build_type"] = build_type();
  info["libtorch"] = {{"version", libtorch_version()}, {"cpu_capability", libtorch_cpu_capability()}};
  info["onednn"] = {{"version", onednn_version()}, {"isa", onednn_isa()}};
  info["blas"] = {{"library", blas.library}, {"core", blas.core}, {"threading", to_string(blas.threading)}};
  info["cores"] = available_cores();
  info["threads"] = options.threads;
  info["cpu"] = {
      {"brand", cpu_features().brand}, {"features", features}, {"amx_permission", to_string(request_amx_permission())}};
  info["memory"] = {{"total_bytes", memory.total_bytes}, {"available_bytes", memory.available_bytes}};
  return info;
}

std::string present_features(const Json& features) {
  std::string names;
  for (const auto& [name, present] : features.items()) {
    if (present.get<bool>()) names += (names.empty() ? "" : " ") + name;
  }
  return names.empty() ? "none" : names;
}

std::string in_gibibytes(const Json& bytes) {
  return fixed_digits(bytes.get<double>() / (1024.0 * 1024.0 * 1024.0), 1) + " GiB";
}

std::string or_unknown(const Json& text) {
  const auto words = text.get<std::string>();
  return words.empty() ? "unknown" : words;
}

void print_as_table(const Json& info) {
  const auto word = [](const Json& value) { return value.get<std::string>(); };
  const std::vector<std::pair<std::string, std::string>> lines = {
      {"routing", word(info["version"]) + " (" + word(info["build_type"]) + ", " + word(info["compiler"]) + ")"},
      {"libtorch", word(info["libtorch"]["version"]) + ", vectors " + word(info["libtorch"]["cpu_capability"])},
      {"oneDNN", word(info["onednn"]["version"]) + ", instructions " + word(info["onednn"]["isa"])},
      {"BLAS", or_unknown(info["blas"]["library"]) + ", core " + or_unknown(info["blas"]["core"]) + ", threads " +
                   word(info["blas"]["threading"])},
      {"CPU", word(info["cpu"]["brand"])},
      {"features", present_features(info["cpu"]["features"])},
      {"AMX", word(info["cpu"]["amx_permission"])},
      {"cores",
       std::to_string(info["cores"].get<int>()) + ", threads used " + std::to_string(info["threads"].get<int>())},
      {"memory", in_gibibytes(info["memory"]["available_bytes"]) + " available of " +
                     in_gibibytes(info["memory"]["total_bytes"])},
  };
  print_pairs(lines, 10);
}

}  // namespace

Command add_info(CLI::App& program, const ProgramOptions& options) {
  const auto json = std::make_shared<bool>(false);
  const auto experiment = std::make_shared<ExperimentOptions>();
  CLI::App* app = program.add_subcommand(
      "info",
      "Print versions, processor, threads and memory, or what an experiment amounts to\n\n"
      "With --preset, --config or --set: weights, heads of every layer, keys a token reads, validity of the\n"
      "likelihood, and an estimate of the memory that training takes. Nothing is trained or allocated.");
  add_experiment_options(*app, *experiment);
  app->add_flag("--json", *json, "print the result as JSON")->disable_flag_override()->group("Output");
  app->footer("Example  routing info --preset tiny-enwik8\n" + exit_code_line());
  return {app, [json, experiment, &options] {
            const bool about_a_model = experiment->names_a_base() || !experiment->settings.empty();
            const Json info = about_a_model ? model_facts(resolve_experiment(*experiment)) : gathered_info(options);
            if (*json) {
              std::cout << info.dump(2) << "\n";
            } else if (about_a_model) {
              print_model_facts(info);
            } else {
              print_as_table(info);
            }
            return kDone;
          }};
}

}  // namespace routing
