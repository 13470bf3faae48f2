// Text that comes through a pipe and is needed more than once: a training reads it again when it goes on.
#pragma once

#include <filesystem>

namespace routing {

// Reads a pipe (is_pipe() in source.h) to its end into a file of the folder, which is made if need be, and gives that
// file: standard-input-HASH or pipe-HASH, after the xxHash64 of its bytes, so that equal bytes are one file. What is
// compressed by gzip also ends in .gz, which says so to those who read it. The file appears when it is whole.
//
// Throws  FileError  the pipe is a terminal, ended without a byte or cannot be read; the file cannot be written
std::filesystem::path keep_pipe(const std::filesystem::path& pipe, const std::filesystem::path& folder);

// What people call it: "standard input", or the path.
std::string pipe_name(const std::filesystem::path& pipe);

}  // namespace routing
