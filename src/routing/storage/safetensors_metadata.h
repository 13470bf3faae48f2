// Texts beside the tensors of a file that is already written.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace routing {

// Writes the file `from` to `to` with these texts in its metadata, whatever stood under their keys. The tensors keep
// their very bytes and are never held in memory; `to` appears in one step (see AtomicFile).
//
// Throws a FileError for a file that is damaged, cannot be written or whose header would get too long, and for a text
// that is not UTF-8; what was at `to` is then as it was.
void copy_safetensors(const std::filesystem::path& from, const std::filesystem::path& to,
                      const std::map<std::string, std::string>& texts);

// Gives the metadata of a safetensors file this text under this key, whatever stood there: a copy in place
// of itself, so a reader sees the old file or the new one.
void set_safetensors_metadata(const std::filesystem::path& path, const std::string& key, const std::string& text);

}  // namespace routing
