// Named experiments: the files of presets/, built into the library, so that a program needs no files beside itself.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace routing {

// In alphabetical order.
const std::vector<std::string>& preset_names();
// The file as it is, its base not filled in. An unknown name is a ConfigError that names the nearest.
const std::string& preset_text(std::string_view name);
// Its first line of comment, for lists.
std::string preset_summary(std::string_view name);

// Name and text of each file of presets/. The build writes this function, by cmake/embed_files.cmake.
std::vector<std::pair<std::string, std::string>> embedded_presets();

}  // namespace routing
