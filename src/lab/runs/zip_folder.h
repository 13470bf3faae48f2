// A folder as one archive.
#pragma once

#include <filesystem>
#include <string>

namespace routing {

// Writes the files of a folder, but not of folders in it, to a .zip file, below a folder of the name `top`. An archive
// that is there is replaced in one step. Throws a FileError if a file cannot be read or the archive not be written;
// what was there then stays.
void write_zip(const std::filesystem::path& archive, const std::filesystem::path& folder, const std::string& top);

}  // namespace routing
