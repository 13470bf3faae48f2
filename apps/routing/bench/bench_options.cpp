#include "bench/bench_options.h"

#include "shell/command_line.h"

namespace routing {

void add_size(CLI::App& app, const std::string& name, std::int64_t& value, const std::string& text) {
  app.add_option(name, value, text)->type_name("N")->check(whole_number(1))->capture_default_str()->group("Sizes");
}

void add_word_list(CLI::App& app, const std::string& name, std::vector<std::string>& words, const std::string& text) {
  std::string defaults;
  for (const std::string& word : words) defaults += (defaults.empty() ? "" : ",") + word;
  app.add_option(name, words, text)
      ->type_name("LIST")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->default_str(defaults)
      ->group("Cases");
}

void add_measuring_options(CLI::App& app, BenchOptions& options) {
  add_word_list(app, "--precision", options.precisions, "of products: fp32, bf16");
  app.add_option("--repeats", options.repeats, "rounds; every case runs once per round")
      ->type_name("N")
      ->check(whole_number(1, 1000000))
      ->capture_default_str()
      ->group("Measuring");
  app.add_option("--seed", options.seed, "fixes the inputs")
      ->type_name("N")
      ->check(whole_number(0))
      ->capture_default_str()
      ->group("Measuring");
  app.add_flag("--json", options.json, "one JSON object per line instead of a table")
      ->disable_flag_override()
      ->group("Output");
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
