#pragma once
#include <span>
#include <string_view>
namespace routing {
struct PageFile {
  std::string_view path, content_type, gzip_bytes, etag;
};
std::span<const PageFile> page_files();
}  // namespace routing
