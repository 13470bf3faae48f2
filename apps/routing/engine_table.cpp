// The engine: what computes, handed out to the half of the program that reads the command line.
#include "routing/core/parallel.h"
#include "routing/kernels/dispatch/onednn_limit.h"
#include "routing/ops/tensor_memory.h"
#include "shell/engine.h"
#include "version.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include <stdexcept>
#include <string>

namespace routing {
namespace {

void set_threads(const ProgramOptions& program) {
  // libtorch uses oneDNN too.
  limit_onednn();
  set_num_threads(program.threads);
  // What costs time runs in our own loops. Threads of libtorch's would gain nothing more, and wait for each other
  // spinning: one busy neighbour on the machine would make training many times slower.
  at::set_num_threads(1);
  reuse_tensor_memory();
}

// The other half knows no errors of libtorch. Their what() has many lines; the first says it.
template <auto* run, class Options>
int in_plain_errors(const Options& options, const ProgramOptions& program) {
  try {
    return run(options, program);
  } catch (const c10::Error& error) {
    const std::string message = error.what_without_backtrace();
    throw std::runtime_error(message.substr(0, message.find('\n')));
  }
}

const Engine table{
    .version = program_version,
    .set_threads = set_threads,
    .quickstart = in_plain_errors<run_quickstart>,
    .train = in_plain_errors<run_train>,
    .eval = in_plain_errors<run_eval>,
    .generate = in_plain_errors<run_generate>,
    .serve = in_plain_errors<run_serve>,
    .audit = in_plain_errors<run_audit>,
    .convert = in_plain_errors<run_convert>,
    .analyze_patterns = in_plain_errors<run_analyze_patterns>,
    .analyze_attention = in_plain_errors<run_analyze_attention>,
    .analyze_health = in_plain_errors<run_analyze_health>,
    .analyze_jsd = in_plain_errors<run_analyze_jsd>,
    .analyze_recall = in_plain_errors<run_analyze_recall>,
    .analyze_leak = in_plain_errors<run_analyze_leak>,
    .analyze_distance = in_plain_errors<run_analyze_distance>,
    .table = in_plain_errors<run_table_command>,
    .bench_attention = in_plain_errors<run_bench_attention>,
    .bench_train = in_plain_errors<run_bench_train>,
    .bench_scaling = in_plain_errors<run_bench_scaling>,
    .bench_layers = in_plain_errors<run_bench_layers>,
    .bench_decode = in_plain_errors<run_bench_decode>,
    .bench_distributed = in_plain_errors<run_bench_distributed>,
    .bench_long = in_plain_errors<run_bench_long>,
    .info = in_plain_errors<run_info>,
    .doctor = in_plain_errors<run_doctor>,
};

}  // namespace
}  // namespace routing

const routing::Engine* routing_engine() {
  return &routing::table;
}
