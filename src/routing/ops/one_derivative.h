// What the backward passes of our operations say where a graph of them is asked for.
#pragma once

#include "routing/core/error.h"

#include <ATen/core/grad_mode.h>

namespace routing {

// Throws an InputError inside a backward pass that is itself to be differentiated (create_graph).
inline void refuse_second_derivative(const char* operation) {
  require<InputError>(!at::GradMode::is_enabled(), operation,
                      ": it can be differentiated once, but a second derivative was asked for (create_graph)");
}

}  // namespace routing
