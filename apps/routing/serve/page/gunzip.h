// The page for clients that take no gzip.
#pragma once

#include <string>
#include <string_view>

namespace routing {

// Throws a std::runtime_error for what is no whole gzip file.
std::string gunzip(std::string_view bytes);

}  // namespace routing
