#include "routing/core/parallel.h"
#include "routing/ops/tensor_memory.h"
#include "shell/engine.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include <stdexcept>
#include <string>

namespace routing {
namespace {

void set_threads(const ProgramOptions& program) {
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

}  // namespace

const Engine& engine(const ProgramOptions& program) {
  static const Engine table{.set_threads = set_threads, .train = in_plain_errors<run_train>};
  table.set_threads(program);
  return table;
}

}  // namespace routing
