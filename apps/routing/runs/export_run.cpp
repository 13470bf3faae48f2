#include "inputs/run_files.h"
#include "lab/runs/model_export.h"
#include "routing/core/clock.h"
#include "routing/core/error.h"
#include "runs/export_options.h"
#include "runs/model_card.h"
#include "shell/json_text.h"

#include <iostream>
#include <system_error>

namespace routing {
namespace {

namespace fs = std::filesystem;

// Where the model's run is: its own folder for an export or a lone file, that of its run for a checkpoint.
fs::path run_of(const fs::path& model) {
  const fs::path beside = fs::absolute(model).lexically_normal().parent_path();
  std::error_code ignored;
  return fs::exists(beside / "trainer.json", ignored) ? beside.parent_path().parent_path() : beside;
}

std::string name_of(const fs::path& path) {
  const fs::path whole = fs::absolute(path).lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

ExportSource source_of(const fs::path& model) {
  ExportSource source{.model = read_model_header(model)};
  for (const TokenKind kind : {TokenKind::words, TokenKind::subwords}) {
    if (source.tokenizer.empty()) source.tokenizer = kept_tokenizer(model, kind);
  }
  const fs::path metrics = RunDirectory(run_of(model)).metrics_file();
  std::error_code ignored;
  if (fs::is_regular_file(metrics, ignored)) source.metrics = metrics;
  return source;
}

}  // namespace

int export_run(const ExportOptions& options, const ProgramOptions& /*program*/) {
  const fs::path model = model_file(options.run, options.checkpoint);
  const std::string out = options.out.empty() ? name_of(run_of(model)) + "-export" : options.out;
  ModelCard card{.title = fs::path(name_of(out)).stem().string(), .source = source_of(model), .date = utc_now()};
  card.date.resize(std::string("2026-11-16").size());
  if (!card.source.metrics.empty()) card.history = read_run_history(card.source.metrics);
  const CheckpointPlace place{.folder = model.parent_path()};
  std::error_code ignored;
  if (fs::exists(place.trainer(), ignored)) card.trained = read_trainer_state(place);
  const std::vector<ExportedFile> files =
      export_model(card.source, model_card(card), {.path = out, .replace = options.force});
  if (options.json) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const ExportedFile& file : files) all.push_back({{"name", file.name}, {"bytes", file.bytes}});
    std::cout << json_text({{"model", model.string()}, {"export", out}, {"files", all}}) << "\n";
    return kDone;
  }
  std::cout << out << "\n";
  for (const ExportedFile& file : files) std::cout << "  " << file.name << "   " << file.bytes << " bytes\n";
  return kDone;
}

}  // namespace routing
