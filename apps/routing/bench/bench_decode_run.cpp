#include "bench/bench_options.h"
#include "bench/bench_output.h"
#include "lab/bench/decode_bench.h"
#include "shell/engine.h"
#include "shell/output.h"

#include <string>
#include <vector>

namespace routing {
namespace {

void print_summary(BenchOutput& output, const bench::DecodeSummary& summary) {
  nlohmann::ordered_json object{{"bench", "decode-summary"},
                                {"pattern", summary.content},
                                {"precision", summary.precision},
                                {"batch", summary.batch},
                                {"first_position", summary.first_position},
                                {"last_position", summary.last_position},
                                {"last_over_first", summary.last_over_first},
                                {"step_over_read", summary.step_over_read}};
  object["rerun_over_step"] = summary.rerun_over_step ? nlohmann::ordered_json(*summary.rerun_over_step) : nullptr;
  const std::string last = std::to_string(summary.last_position);
  std::string text = summary.content + " " + summary.precision + ", batch " + std::to_string(summary.batch) +
                     ": a step at " + last + " takes " + fixed_digits(summary.last_over_first, 2) + " x one at " +
                     std::to_string(summary.first_position) + ", " + fixed_digits(summary.step_over_read, 2) +
                     " x reading the weights";
  if (summary.rerun_over_step)
    text += "; the prefix again takes " + fixed_digits(*summary.rerun_over_step, 0) + " x a step";
  output.print_line(object, text);
}

}  // namespace

int run_bench_decode(const DecodeOptions& options, const ProgramOptions& program) {
  BenchOutput output(program, options.json);
  bench::DecodeBench decode = options.decode;
  decode.precisions = options.precisions;
  decode.runner = {.repeats = options.repeats, .progress = bench_progress(program)};
  const std::vector<bench::Row> rows = bench::bench_decode(decode);
  output.print(rows);
  for (const bench::DecodeSummary& summary : bench::summarise_decoding(rows)) print_summary(output, summary);
  return kDone;
}

}  // namespace routing
