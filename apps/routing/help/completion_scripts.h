// The scripts that the shells load, built into the program.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace routing {

// Shell and script: the files of help/shells/. The build writes this function, by cmake/embed_files.cmake.
std::vector<std::pair<std::string, std::string>> completion_scripts();

}  // namespace routing
