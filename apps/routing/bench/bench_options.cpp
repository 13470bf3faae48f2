#include "bench/bench_options.h"

#include "shell/options.h"

namespace routing {

void add_measuring_options(CLI::App& app, BenchOptions& options) {
  OptionGroup(app, "Cases")
      .add_list({"--precision LIST", "of products: fp32, bf16", {"fp32", "bf16"}}, options.precisions);
  OptionGroup measuring(app, "Measuring");
  measuring.add({"--repeats N", "rounds; every case runs once per round"}, options.repeats, whole_number(1, 1000000));
  measuring.add({"--seed N", "fixes the inputs"}, options.seed, whole_number(0));
  OptionGroup(app, "Output").flag({"--json", "one JSON object per line instead of a table"}, options.json);
}

const std::vector<std::string>& offered_patterns() {
  static const std::vector<std::string> words{"local",         "nearest", "threshold", "balanced", "full",
                                              "strided",       "random",  "lsh",       "fixed",    "local2d",
                                              "local_offsets", "span",    "memory"};
  return words;
}

std::vector<MatmulPrecision> chosen_precisions(const BenchOptions& options) {
  std::vector<MatmulPrecision> precisions;
  for (const std::string& word : options.precisions)
    precisions.push_back(parse_word<MatmulPrecision>(word, "precision"));
  return precisions;
}

std::vector<bench::Pass> chosen_passes(const BenchOptions& options) {
  std::vector<bench::Pass> passes;
  for (const std::string& word : options.passes) passes.push_back(parse_word<bench::Pass>(word, "pass"));
  return passes;
}

}  // namespace routing
