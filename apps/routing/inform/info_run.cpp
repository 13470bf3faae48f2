#include "inform/inform_options.h"
#include "inform/model_facts.h"
#include "inform/system_facts.h"
#include "inputs/run_model.h"
#include "routing/core/parallel.h"
#include "routing/kernels/dispatch/cpu_features.h"
#include "routing/model/weights.h"
#include "shell/engine.h"
#include "shell/output.h"
#include "version.h"

#include <filesystem>
#include <iostream>
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

// The same facts of a trained model, and what an audit found of it.
Json run_facts(const InfoOptions& options) {
  const std::filesystem::path path = model_file(options.run, options.checkpoint);
  Json facts = model_facts(load_model_config(path));
  facts["model"] = path.string();
  facts["audit"] = audit_text(load_model_notes(path));
  return facts;
}

}  // namespace

int run_info(const InfoOptions& options, const ProgramOptions& program) {
  const bool about_a_model = options.experiment || !options.run.empty();
  const Json info = !options.run.empty() ? run_facts(options)
                    : options.experiment ? model_facts(*options.experiment)
                                         : gathered_info(program);
  if (options.json) {
    std::cout << info.dump(2) << "\n";
  } else if (about_a_model) {
    print_model_facts(info);
  } else {
    print_as_table(info);
  }
  return kDone;
}

}  // namespace routing
