#include "eval/eval_recurrence.h"

#include "lab/texts/recurrence_report.h"
#include "routing/core/error.h"
#include "shell/output.h"

#include <iomanip>
#include <iostream>
#include <string>

namespace routing {
namespace {

// "1.2345  1.2300 to 1.2390", without the interval where too few windows have such targets.
std::string with_interval(const RecurrenceRow& row) {
  if (row.targets == 0) return "-";
  const std::string mean = fixed_digits(row.bits.ratio, 4);
  if (!row.bits.bounded) return mean + "  too few windows";
  return mean + "  " + fixed_digits(row.bits.low, 4) + " to " + fixed_digits(row.bits.high, 4);
}

nlohmann::ordered_json bits_json(const RecurrenceRow& row) {
  nlohmann::ordered_json object{{"bits", nullptr}, {"low", nullptr}, {"high", nullptr}};
  if (row.targets == 0) return object;
  object["bits"] = row.bits.ratio;
  if (!row.bits.bounded) return object;
  object["low"] = row.bits.low;
  object["high"] = row.bits.high;
  return object;
}

void print_row(const std::vector<std::string>& cells, const std::vector<int>& widths) {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    std::cout << std::left << std::setw(i + 1 < cells.size() ? widths.at(i) : 0) << cells[i];
  }
  std::cout << "\n";
}

// One thing in which two runs could differ, as people name it.
struct Compared {
  const char* what = "";
  std::string first;
  std::string second;
  const char* remedy = "";
};

}  // namespace

RecurrenceOptions recurrence_options(const EvalOptions& options, const EvalRun& run) {
  return {.context = options.context > 0 ? options.context : usual_context(run.data->facts().tokens),
          .reach = options.reach > 0 ? options.reach : local_reach(run.config())};
}

void require_same_windows(const EvalOptions& options, const EvalRun& run, const EvalRun& other) {
  const auto number = [](std::int64_t value) { return std::to_string(value); };
  const LikelihoodOptions windows = eval_windows(options, run);
  const LikelihoodOptions other_windows = eval_windows(options, other);
  const DataFacts& facts = run.data->facts();
  const DataFacts& other_facts = other.data->facts();
  const auto tokens_of = [&](const EvalRun& of) { return number(of.data->part(part_name(options)).tokens.size()); };
  const char* const name_data = "name the same for both with --data";
  for (const Compared& compared : {
           Compared{"data", run.data->path().string(), other.data->path().string(), name_data},
           Compared{"kind of tokens", std::string(to_string(facts.tokens)), std::string(to_string(other_facts.tokens)),
                    "compare runs of the same tokens"},
           Compared{"vocabulary", facts.tokenizer_hash, other_facts.tokenizer_hash, "compare runs of the same tokens"},
           Compared{"split into parts", facts.cut + " " + tokens_of(run), other_facts.cut + " " + tokens_of(other),
                    "compare runs with the same data.split"},
           Compared{"length of a window", number(windows.sequence_length), number(other_windows.sequence_length),
                    "give one for both with --sequence-length"},
           Compared{"stride", number(windows.stride), number(other_windows.stride), "give one for both with --stride"},
       }) {
    require<ConfigError>(compared.first == compared.second, "--against: the two runs differ in their ", compared.what,
                         ": '", compared.first, "' of ", run.path.string(), " and '", compared.second, "' of ",
                         other.path.string(), "; ", compared.remedy);
  }
}

void print_recurrence(const RecurrenceResult& result, const EvalRun& run) {
  const TokenKind kind = run.data->facts().tokens;
  const std::string unit = unit_of(kind);
  std::cout << "\nTargets by how far back the " << result.options.context << " " << to_string(kind)
            << " before them last occurred in the window: near, within the reach of the local heads,\n"
            << result.options.reach << " (the sum of the layers' windows); far, farther back; never. " << unit
            << ", 95 % intervals over " << result.windows.size() << " windows\n(Fieller's, by Student's t).\n";
  const std::vector<RecurrenceRow> rows = recurrence_rows(result.windows);
  const bool compares = !result.against.empty();
  std::vector<RecurrenceRow> others;
  std::vector<RecurrenceRow> differences;
  if (compares) {
    others = recurrence_rows(result.other_windows);
    differences = recurrence_differences(result.windows, result.other_windows);
    std::cout << "The other is " << result.against.string() << ", " << result.other_validity
              << "; differences are paired by window, negative where the first is better.\n";
  }
  std::cout << "\n";
  const std::vector<int> widths{18, 12, 10, 32, 12};
  std::vector<std::string> title{"target", "number", "share", unit};
  if (compares) title.insert(title.end(), {"the other", "difference"});
  print_row(title, widths);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].from > 0 && rows[i].targets == 0) continue;
    std::vector<std::string> cells{rows[i].name + (rows[i].from > 0 ? " back" : ""), std::to_string(rows[i].targets),
                                   fixed_digits(100.0 * rows[i].share, 2) + " %", with_interval(rows[i])};
    if (compares) {
      cells.push_back(rows[i].targets == 0 ? "-" : fixed_digits(others[i].bits.ratio, 4));
      cells.push_back(with_interval(differences[i]));
    }
    print_row(cells, widths);
  }
}

nlohmann::ordered_json recurrence_json(const RecurrenceResult& result, const EvalRun& run) {
  const std::vector<RecurrenceRow> rows = recurrence_rows(result.windows);
  std::vector<RecurrenceRow> others;
  std::vector<RecurrenceRow> differences;
  nlohmann::ordered_json object{{"context", result.options.context},
                                {"reach", result.options.reach},
                                {"unit", unit_of(run.data->facts().tokens)},
                                {"interval", "95 %, Fieller's over windows"}};
  if (!result.against.empty()) {
    object["against"] = {{"model", result.against.string()}, {"validity", result.other_validity}};
    others = recurrence_rows(result.other_windows);
    differences = recurrence_differences(result.windows, result.other_windows);
  }
  nlohmann::ordered_json classes = nlohmann::ordered_json::object();
  nlohmann::ordered_json distances = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    nlohmann::ordered_json row = nlohmann::ordered_json::object();
    if (rows[i].from > 0) row = {{"from", rows[i].from}, {"to", rows[i].to}};
    row["targets"] = rows[i].targets;
    row["share"] = rows[i].share;
    row.update(bits_json(rows[i]));
    if (!differences.empty()) {
      row["against"] = bits_json(others[i]);
      row["difference"] = bits_json(differences[i]);
    }
    if (rows[i].from > 0) {
      distances.push_back(row);
    } else {
      classes[rows[i].name] = row;
    }
  }
  object["classes"] = classes;
  object["distances"] = distances;
  return object;
}

}  // namespace routing
