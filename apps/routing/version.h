// What was built, how and by what.
#pragma once

#include <string>

namespace routing {

std::string program_version();  // "0.1.0", from the project's CMakeLists.txt
std::string build_type();       // "Release"
std::string compiler();         // "GCC 12.2.0"

}  // namespace routing
