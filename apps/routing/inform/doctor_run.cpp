#include "bench/matmul_rates.h"
#include "inform/doctor_checks.h"
#include "inform/inform_options.h"
#include "inform/system_facts.h"
#include "routing/core/parallel.h"
#include "shell/engine.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

namespace routing {
namespace {

using Json = nlohmann::ordered_json;

// Large enough that the product, not the call, is timed; small enough that ten with the slowest kernels we saw (SSE3,
// one thread) take about a second.
constexpr std::int64_t kMatmulSize = 768;
constexpr int kMatmulRepetitions = 5;

std::vector<Finding> all_findings(const ProgramOptions& options, const MatmulRates& rates) {
  const CpuFeatures& cpu = cpu_features();
  const BlasFacts blas = blas_facts();
  const ThreadFacts threads = {.cores = available_cores(), .threads = options.threads};
  return {judge_blas_core(blas, cpu),
          judge_blas_threading(blas),
          judge_matmul(rates, cpu),
          judge_threads(threads),
          judge_amx(request_amx_permission(), cpu),
          judge_vector_level(libtorch_cpu_capability(), cpu),
          judge_memory(memory_facts())};
}

void print_as_json(const std::vector<Finding>& findings, const MatmulRates& rates) {
  Json checks = Json::array();
  for (const Finding& finding : findings) {
    checks.push_back({{"check", finding.check},
                      {"status", to_string(finding.status)},
                      {"found", finding.found},
                      {"action", finding.action}});
  }
  Json report;
  report["problems"] = count_status(findings, FindingStatus::problem);
  report["warnings"] = count_status(findings, FindingStatus::warning);
  report["blas_gflops"] = rates.blas_gflops;
  report["onednn_gflops"] = rates.onednn_gflops;
  report["checks"] = checks;
  std::cout << report.dump(2) << "\n";
}

void print_as_list(const std::vector<Finding>& findings) {
  const auto column = [](const auto& text, int width) -> std::ostream& {
    return std::cout << std::left << std::setw(width) << text;
  };
  for (const Finding& finding : findings) {
    column(to_string(finding.status), 9);
    column(finding.check, 18) << finding.found << "\n";
    if (!finding.action.empty()) column("", 27) << "-> " << finding.action << "\n";
  }
  const auto count = [&](FindingStatus status) { return count_status(findings, status); };
  std::cout << "problems " << count(FindingStatus::problem) << ", warnings " << count(FindingStatus::warning) << "\n";
}

}  // namespace

int run_doctor(const DoctorOptions& options, const ProgramOptions& program) {
  if (!program.quiet) std::cerr << "routing: timing matrix products\n";
  const MatmulRates rates = measure_matmul(kMatmulSize, kMatmulRepetitions);
  const std::vector<Finding> findings = all_findings(program, rates);
  if (options.json) {
    print_as_json(findings, rates);
  } else {
    print_as_list(findings);
  }
  return kDone;
}

}  // namespace routing
