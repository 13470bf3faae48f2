// Texts beside the tensors of a file that is already written.
#pragma once

#include <filesystem>
#include <string>

namespace routing {

// Gives the metadata of a safetensors file this text under this key, whatever stood there. The tensors keep their very
// bytes and are never held in memory; the file is replaced in one step (see AtomicFile), so a reader sees the old
// one or the new one.
//
// Throws a FileError for a file that is damaged, cannot be replaced or whose header would get too long, and for a text
// that is not UTF-8; the file is then as it was.
void set_safetensors_metadata(const std::filesystem::path& path, const std::string& key, const std::string& text);

}  // namespace routing
