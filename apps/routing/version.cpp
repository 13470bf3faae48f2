#include "version.h"

namespace routing {

std::string program_version() {
  return ROUTING_VERSION;
}

std::string build_type() {
  return ROUTING_BUILD_TYPE;
}

std::string compiler() {
#if defined(__clang__)
  return "Clang " __clang_version__;
#else
  return "GCC " __VERSION__;
#endif
}

}  // namespace routing
