#include "bench/bench_output.h"

#include "inform/system_facts.h"
#include "routing/kernels/dispatch/cpu_features.h"
#include "routing/kernels/dispatch/isa.h"
#include "shell/output.h"
#include "version.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iomanip>
#include <iostream>
#include <optional>
#include <unistd.h>

namespace routing {
namespace {

using bench::Row;
using Json = nlohmann::ordered_json;

template <class Value>
Json value_or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json row_object(const Row& row, const Json& machine) {
  Json object{{"bench", row.bench},
              {"pattern", row.pattern},
              {"n", row.n},
              {"heads", row.heads},
              {"dim", row.dim},
              {"window", row.window},
              {"clusters", row.clusters},
              {"precision", row.precision},
              {"pass", row.pass},
              {"pairs", row.pairs},
              {"seconds", row.seconds()},
              {"gflops", row.gflops()},
              {"peak_bytes", value_or_null(row.peak_bytes)},
              {"tokens_per_second", row.tokens_per_second()},
              {"ratio", row.ratio},
              {"batch", row.batch},
              {"flops", row.flops},
              {"repeats", row.timing.samples},
              {"spread", row.timing.spread()},
              {"fastest", row.timing.fastest},
              {"slowest", row.timing.slowest},
              {"gemm_gflops", row.gemm_gflops},
              {"gemm_precision", row.gemm_type},
              {"share_of_gemm", row.share_of_gemm()}};
  if (row.kept_bytes) object["kept_bytes"] = *row.kept_bytes;
  if (row.plan_share) object["plan_share"] = *row.plan_share;
  if (row.memberships) object["memberships"] = *row.memberships;
  if (row.bytes > 0.0) {
    object["bytes"] = row.bytes;
    object["bytes_per_second"] = row.bytes / row.seconds();
  }
  object.update(machine);
  return object;
}

// Enough digits to compare, not so many that they pretend.
std::string three_digits(double value) {
  if (value == 0.0) return "0";
  const int whole = static_cast<int>(std::floor(std::log10(std::abs(value)))) + 1;
  return fixed_digits(value, std::clamp(3 - whole, 0, 9));
}

std::string percent(double share) {
  return fixed_digits(100.0 * share, 1) + "%";
}

struct Column {
  std::string title;
  std::function<std::string(const Row&)> text;  // empty if the row has nothing to say
};

std::string count(std::int64_t value) {
  return value == 0 ? "" : std::to_string(value);
}

const std::vector<Column>& columns() {
  const auto mebibytes = [](const std::optional<std::int64_t>& bytes) {
    return bytes ? three_digits(static_cast<double>(*bytes) / (1024.0 * 1024.0)) : "";
  };
  static const std::vector<Column> all{
      {"pattern", [](const Row& row) { return row.pattern; }},
      {"pass", [](const Row& row) { return row.pass; }},
      {"prec", [](const Row& row) { return row.precision; }},
      {"n", [](const Row& row) { return count(row.n); }},
      {"window", [](const Row& row) { return count(row.window); }},
      {"clusters", [](const Row& row) { return count(row.clusters); }},
      {"Mpairs",
       [](const Row& row) { return row.pairs == 0 ? "" : three_digits(static_cast<double>(row.pairs) * 1e-6); }},
      {"member", [](const Row& row) { return row.memberships ? fixed_digits(*row.memberships, 2) : ""; }},
      {"ms", [](const Row& row) { return three_digits(row.seconds() * 1e3); }},
      {"spread", [](const Row& row) { return percent(row.timing.spread()); }},
      {"GFLOP/s", [](const Row& row) { return row.flops == 0.0 ? "" : three_digits(row.gflops()); }},
      {"of GEMM", [](const Row& row) { return row.flops == 0.0 ? "" : percent(row.share_of_gemm()); }},
      {"GB/s", [](const Row& row) { return row.bytes == 0.0 ? "" : three_digits(row.gigabytes_per_second()); }},
      {"tokens/s", [](const Row& row) { return fixed_digits(row.tokens_per_second(), 0); }},
      {"peak MiB", [mebibytes](const Row& row) { return mebibytes(row.peak_bytes); }},
      {"kept MiB", [mebibytes](const Row& row) { return mebibytes(row.kept_bytes); }},
      {"plan", [](const Row& row) { return row.plan_share ? percent(*row.plan_share) : ""; }},
      {"ratio", [](const Row& row) { return fixed_digits(row.ratio, 3); }},
  };
  return all;
}

void print_table(const std::vector<Row>& rows) {
  constexpr std::size_t kTextColumns = 3;  // aligned to the left
  std::vector<std::vector<std::string>> lines(rows.size() + 1);
  std::vector<std::size_t> widths;
  std::size_t texts = 0;
  for (std::size_t c = 0; c < columns().size(); ++c) {
    const Column& column = columns()[c];
    std::vector<std::string> cells{column.title};
    for (const Row& row : rows) cells.push_back(column.text(row));
    if (std::all_of(cells.begin() + 1, cells.end(), [](const std::string& cell) { return cell.empty(); })) continue;
    if (c < kTextColumns) ++texts;
    std::size_t width = 0;
    for (std::size_t line = 0; line < cells.size(); ++line) {
      width = std::max(width, cells[line].size());
      lines[line].push_back(cells[line]);
    }
    widths.push_back(width);
  }
  for (const std::vector<std::string>& line : lines) {
    for (std::size_t c = 0; c < line.size(); ++c) {
      std::cout << (c == 0 ? "" : "  ") << (c < texts ? std::left : std::right)
                << std::setw(static_cast<int>(widths[c])) << line[c];
    }
    std::cout << "\n";
  }
  std::cout << std::flush;
}

}  // namespace

Json bench_machine(const ProgramOptions& options) {
  return {{"threads", options.threads},
          {"cpu", cpu_features().brand},
          {"isa", to_string(kernels::active_isa())},
          {"onednn_isa", onednn_isa()},
          {"build", build_type() + ", " + compiler()},
          {"version", program_version()}};
}

BenchOutput::BenchOutput(const ProgramOptions& options, bool json) : machine_(bench_machine(options)), json_(json) {}

void BenchOutput::print(const std::vector<Row>& rows) {
  if (json_) {
    for (const Row& row : rows) std::cout << row_object(row, machine_) << "\n";
    std::cout << std::flush;
    return;
  }
  if (rows.empty()) return;
  const Row& row = rows.front();
  if (first_) {
    std::cout << machine_["cpu"].get<std::string>() << ", " << machine_["threads"] << " threads, kernels "
              << machine_["isa"].get<std::string>() << ", oneDNN " << machine_["onednn_isa"].get<std::string>() << "; "
              << machine_["version"].get<std::string>() << ", " << machine_["build"].get<std::string>() << "\n";
  }
  first_ = false;
  std::cout << "GEMM " << three_digits(row.gemm_gflops) << " GFLOP/s (" << row.gemm_type
            << ", 4096 x 512 x 2048), medians of " << row.timing.samples << " runs in turns, batch " << row.batch
            << "\n\n";
  print_table(rows);
  std::cout << "\n";
}

void BenchOutput::print_line(const Json& object, const std::string& text) {
  if (!json_) {
    std::cout << text << std::endl;
    return;
  }
  Json whole = object;
  whole.update(machine_);
  std::cout << whole << std::endl;
}

std::function<void(int, int)> bench_progress(const ProgramOptions& options) {
  if (options.quiet || isatty(STDERR_FILENO) == 0) return {};
  return [](int done, int all) {
    std::cerr << "\rround " << done << " of " << all << (done == all ? "\r\033[K" : "") << std::flush;
  };
}

}  // namespace routing
