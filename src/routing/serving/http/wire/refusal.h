// Why a request is not one.
#pragma once

#include <string>

namespace routing::http {

struct Refusal {
  int status = 400;
  std::string message;
};

}  // namespace routing::http
