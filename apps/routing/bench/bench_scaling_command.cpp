#include "bench/bench_options.h"
#include "bench/bench_output.h"
#include "commands.h"
#include "lab/bench/scaling_bench.h"
#include "shell/options.h"
#include "shell/output.h"

#include <memory>
#include <string>

namespace routing {
namespace {

struct ScalingOptions : BenchOptions {
  bench::ScalingBench scaling;
  bench::ClusterSweep sweep;
  bool sweep_clusters = false;
};

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

int run(const ScalingOptions& options, const ProgramOptions& program) {
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

}  // namespace

Command add_bench_scaling(CLI::App& bench_app, const ProgramOptions& program) {
  const auto options = std::make_shared<ScalingOptions>();
  options->patterns = {"threshold", "local"};
  options->precisions = {"fp32"};
  CLI::App* app = add_command(
      bench_app, "scaling",
      "How time and memory of attention grow with the sequence\n\n"
      "Forward and backward with the plan, sqrt(n) clusters and a window of n / clusters, then fitted exponents of n.\n"
      "With --sweep-clusters the length is fixed and the number of clusters doubles instead.",
      "routing bench scaling --from 512 --to 2048 --fit-from 512 --heads 2");
  OptionGroup cases(*app, "Cases");
  cases.add_list({"--pattern LIST", "as in bench attention; a sweep takes the first"}, options->patterns);
  OptionGroup sizes(*app, "Sizes");
  sizes.add({"--from N", "shortest sequence"}, options->scaling.from, whole_number(1));
  sizes.add({"--to N", "longest sequence; lengths double"}, options->scaling.to, whole_number(1));
  sizes.add({"--fit-from N", "shortest sequence of the fit"}, options->scaling.fit_from, whole_number(1));
  sizes.add({"--full-to N", "longest sequence of full attention"}, options->scaling.full_to, whole_number(1));
  sizes.add({"--batch N", "sequences"}, options->scaling.batch, whole_number(1));
  sizes.add({"--heads N", "heads"}, options->scaling.heads, whole_number(1));
  sizes.add({"--dim N", "of a head"}, options->scaling.dim, whole_number(1));
  OptionGroup sweep(*app, "Sweep");
  sweep.flag({"--sweep-clusters", "vary the clusters at one length"}, options->sweep_clusters);
  sweep.add({"--sweep-tokens N", "tokens of a sequence"}, options->sweep.n, whole_number(1));
  sweep.add({"--clusters-from N", "fewest clusters"}, options->sweep.from, whole_number(1));
  sweep.add({"--clusters-to N", "most clusters; they double"}, options->sweep.to, whole_number(1));
  add_measuring_options(*app, *options);
  return {app, [options, &program] { return run(*options, program); }};
}

}  // namespace routing
