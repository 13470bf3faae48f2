// Files for readers that want a path: in memory where the system has such a folder, one folder per process.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace routing::fuzz {

// The folder; gone when the process ends as it should.
const std::filesystem::path& scratch_folder();
// A file of it with these bytes; folders before the name are made.
std::filesystem::path scratch_file(const std::string& name, std::string_view bytes);
std::string bytes_of_file(const std::filesystem::path& path);

}  // namespace routing::fuzz
