// Secrets that clients show: "Authorization: Bearer TOKEN".
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace routing::http {

// A token on each line; empty lines and those that begin with '#' are none. FileError if the file cannot be read, if it
// has no token, if one is shorter than 16 characters or holds others than visible ASCII, or if anybody but its owner
// may read it: then the message says the chmod.
std::vector<std::string> read_tokens(const std::filesystem::path& path);

// Whether the value of an Authorization header is "Bearer" and this token. The time it takes depends on the lengths
// only.
bool token_matches(std::string_view authorization, std::string_view token);

}  // namespace routing::http
