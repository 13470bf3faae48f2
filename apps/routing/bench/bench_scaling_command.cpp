#include "bench/bench_options.h"
#include "bench/bench_output.h"
#include "commands.h"
#include "lab/bench/scaling_bench.h"
#include "shell/command_line.h"
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
  CLI::App* app = bench_app.add_subcommand(
      "scaling",
      "How time and memory of attention grow with the sequence\n\n"
      "Forward and backward with the plan, sqrt(n) clusters and a window of n / clusters, then fitted exponents of n.\n"
      "With --sweep-clusters the length is fixed and the number of clusters doubles instead.");
  add_word_list(*app, "--pattern", options->patterns, "as in bench attention; a sweep takes the first");
  add_size(*app, "--from", options->scaling.from, "shortest sequence");
  add_size(*app, "--to", options->scaling.to, "longest sequence; lengths double");
  add_size(*app, "--fit-from", options->scaling.fit_from, "shortest sequence of the fit");
  add_size(*app, "--full-to", options->scaling.full_to, "longest sequence of full attention");
  add_size(*app, "--batch", options->scaling.batch, "sequences");
  add_size(*app, "--heads", options->scaling.heads, "heads");
  add_size(*app, "--dim", options->scaling.dim, "of a head");
  app->add_flag("--sweep-clusters", options->sweep_clusters, "vary the clusters at one length")
      ->disable_flag_override()
      ->group("Sweep");
  const auto add_sweep_size = [&](const char* name, std::int64_t& value, const char* text) {
    add_size(*app, name, value, text);
    app->get_option(name)->group("Sweep");
  };
  add_sweep_size("--sweep-tokens", options->sweep.n, "tokens of a sequence");
  add_sweep_size("--clusters-from", options->sweep.from, "fewest clusters");
  add_sweep_size("--clusters-to", options->sweep.to, "most clusters; they double");
  add_measuring_options(*app, *options);
  app->footer("Example  routing bench scaling --from 512 --to 2048 --fit-from 512 --heads 2\n" + exit_code_line());
  return {app, [options, &program] { return run(*options, program); }};
}

}  // namespace routing
