// The files of the page, as they were packed into the program (web/CMakeLists.txt).
#pragma once

#include <span>
#include <string_view>

namespace routing {

struct PageFile {
  std::string_view path;          // "/index.html"
  std::string_view content_type;  // "text/html; charset=utf-8"
  std::string_view gzip_bytes;    // compressed
  std::string_view etag;          // with its quotes
};

// None where the page was not built.
std::span<const PageFile> page_files();

}  // namespace routing
