// A tensor that learns, with the name it has in checkpoints and error messages.
#pragma once

#include <ATen/ATen.h>

#include <string>

namespace routing {

struct NamedParameter {
  std::string name;
  at::Tensor value;
  // Whether weight decay applies. Parameters with one dimension (biases, gains) should not decay: they do not make a
  // function steeper by being large. Whoever makes the list says so.
  bool decay = true;
};

}  // namespace routing
