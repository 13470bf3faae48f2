#include "analyze/audit_subject.h"
#include "inputs/run_model.h"
#include "lab/leak/audit.h"
#include "routing/core/clock.h"
#include "routing/core/error.h"
#include "routing/model/weights.h"
#include "shell/engine.h"
#include "shell/output.h"
#include "train/training_display.h"
#include "version.h"

#include <fmt/core.h>
#include <iostream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace routing {
namespace {

std::string short_number(double value) {
  return fmt::format("{:.3g}", value);
}

std::string change_text(FutureChange change) {
  switch (change) {
    case FutureChange::drawn:
      return "later tokens drawn anew";
    case FutureChange::reversed:
      return "later tokens reversed";
    case FutureChange::replaced:
      return "later tokens of other data";
    case FutureChange::last:
      return "the last token only";
  }
  return "";
}

void print_changes(const PrefixReport& prefix) {
  std::cout << "\nchange                       changes   predictions before   changed    largest change\n";
  for (const FutureChange kind : kEvery<FutureChange>) {
    PrefixReport part = prefix;
    std::erase_if(part.changes, [&](const PrefixChange& each) { return each.change != kind; });
    if (part.changes.empty()) continue;
    const auto column = [](const std::string& text, std::size_t width) {
      return std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
    };
    std::string line = change_text(kind);
    line.resize(27, ' ');
    std::cout << line << column(std::to_string(part.changes.size()), 9)
              << column(std::to_string(part.rows_checked()), 21) << column(std::to_string(part.rows_changed()), 10)
              << column(short_number(part.largest()), 18) << "\n";
  }
  std::cout << "\n";
}

std::string task_text(const LeakTaskResult& task) {
  return fixed_digits(task.nats, 5) + " +- " + fixed_digits(task.half_width, 5) + " nats, floor " +
         fixed_digits(task.floor, 5) + ": " + (task.leaks() ? "leaks" : "no leak learned") + "   (seed " +
         std::to_string(task.seed) + ", n " + std::to_string(task.sizes.tokens) + ", " +
         std::to_string(task.sizes.steps) + " steps, " + fixed_digits(task.seconds, 0) + " s)";
}

std::string parity_text(const DecodeParity& parity) {
  if (!parity.reason.empty()) return "no cache: " + parity.reason;
  return std::to_string(parity.positions) + " positions, " + std::to_string(parity.rows_changed) +
         " differ, largest difference " + short_number(parity.largest) +
         (parity.prompt_tokens > 0 ? "; token by token and after a prompt of " + std::to_string(parity.prompt_tokens)
                                   : "; token by token");
}

std::string contradiction(const AuditReport& report) {
  return report.causal() ? "the configuration says '" + report.label +
                               "', but no prediction changed; try more --positions, other --data or a trained model"
                         : "the configuration says '" + report.label +
                               "', but predictions read the future: a pattern or the model has a bug; please report it";
}

void print_report(const AuditReport& report, const AuditSubject& subject) {
  std::cout << summary(report) << "\n";
  print_changes(report.prefix);
  std::vector<std::pair<std::string, std::string>> lines{
      {"model", subject.model_file.empty() ? report.name + ", fresh weights" : subject.model_file.string()},
      {"configuration", report.label},
      {"tokens", std::to_string(report.prefix.sequences) + " sequences of " + std::to_string(report.prefix.tokens) +
                     ", " + subject.tokens_from},
      {"positions", std::to_string(report.prefix.positions) + ", precision " +
                        (report.precision == MatmulPrecision::bf16 ? "bf16" : "fp32")}};
  if (!report.causal()) lines.emplace_back("origin", origin_text(report));
  lines.emplace_back("decoding", parity_text(report.parity));
  for (const LeakTaskResult& task : report.tasks) lines.emplace_back(to_string(task.task), task_text(task));
  print_pairs(lines, 15);
}

}  // namespace

int run_audit(const AuditOptions& options, const ProgramOptions& program) {
  TrainingDisplay display(program.quiet);
  AuditOptions asked = options;
  asked.notes = [&](const std::string& line) { display.say(line); };
  const AuditSubject subject = open_audit_subject(asked);
  const AuditReport report = run_audit({.model = subject.model,
                                        .precision = chosen_precision(options.precision, subject.model->config()),
                                        .tokens = subject.tokens,
                                        .source = subject.source,
                                        .positions = options.positions,
                                        .seed = options.seed,
                                        .task_seeds = options.quick ? 0 : options.task_seeds,
                                        .progress = [&](const std::string& what, std::int64_t done, std::int64_t all) {
                                          display.progress(what, done, all);
                                        }});
  display.finish();
  const std::string note =
      audit_note(report, {.date = utc_now().substr(0, std::string("2026-11-16").size()), .version = program_version()});
  const bool writes = !subject.model_file.empty() && !options.no_write;
  // First written, then said: a file that cannot be written is an error without a claim to the contrary.
  if (writes) {
    std::error_code gone;
    require<FileError>(
        std::filesystem::last_write_time(subject.model_file, gone) == subject.model_time && !gone,
        subject.model_file.string(),
        ": was replaced or removed while it was audited, so the verdict was not written; audit it again");
    set_model_audit(subject.model_file, note);
  }
  if (options.json) {
    nlohmann::ordered_json object = to_json(report);
    object["model"] = subject.model_file.string();
    object["tokens_from"] = subject.tokens_from;
    object["audit"] = note;
    object["written"] = writes;
    std::cout << object << "\n";
  } else {
    print_report(report, subject);
  }
  if (report.contradicts_label()) std::cerr << "routing: WARNING: " << contradiction(report) << "\n";
  return kDone;
}

}  // namespace routing
