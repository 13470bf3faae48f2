#include "bench/bench_options.h"
#include "bench/bench_output.h"
#include "lab/bench/scaling_bench.h"
#include "shell/engine.h"
#include "shell/output.h"

#include <string>

namespace routing {
namespace {

std::string exponent_text(const std::optional<double>& exponent) {
  return exponent ? "n^" + fixed_digits(*exponent, 3) : "unknown";
}

void print_fit(BenchOutput& output, const bench::GrowthFit& fit, const std::string& precision) {
  nlohmann::ordered_json object{{"bench", "scaling-fit"}, {"pattern", fit.pattern}, {"precision", precision},
                                {"from", fit.from},       {"to", fit.to},           {"points", fit.points}};
  object["exponent_seconds"] = fit.seconds ? nlohmann::ordered_json(*fit.seconds) : nullptr;
  object["exponent_bytes"] = fit.bytes ? nlohmann::ordered_json(*fit.bytes) : nullptr;
  const std::string range = fit.points < 2 ? "too few lengths for a fit"
                                           : "over " + std::to_string(fit.points) + " lengths from " +
                                                 std::to_string(fit.from) + " to " + std::to_string(fit.to);
  output.print_line(object, "fit  " + fit.pattern + " " + precision + ": seconds " + exponent_text(fit.seconds) +
                                ", memory " + exponent_text(fit.bytes) + ", " + range);
}

}  // namespace

int run_bench_scaling(const ScalingOptions& options, const ProgramOptions& program) {
  BenchOutput output(program, options.json);
  const std::vector<MatmulPrecision> precisions = chosen_precisions(options);
  for (const MatmulPrecision precision : precisions) {
    bench::ScalingBench scaling = options.scaling;
    scaling.patterns = options.patterns;
    scaling.precision = precision;
    scaling.seed = options.seed;
    scaling.runner = {.repeats = options.repeats, .progress = bench_progress(program)};
    if (options.sweep_clusters) {
      output.print(bench::bench_cluster_sweep(scaling, options.sweep));
      continue;
    }
    const auto rows = bench::bench_scaling(scaling, [&](const std::vector<bench::Row>& done) { output.print(done); });
    for (const bench::GrowthFit& fit : bench::fit_growth(rows, scaling.fit_from)) {
      print_fit(output, fit, std::string(to_string(precision)));
    }
  }
  return kDone;
}

}  // namespace routing
