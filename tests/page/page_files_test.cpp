// The page as the program carries it.
#include "serve/page/page_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <zlib.h>

namespace routing::page_files_test {
namespace {

// A program that was built without Node.js has no page, and says so when it serves.
#define SKIP_WITHOUT_PAGE() \
  if (page_files().empty()) GTEST_SKIP() << "this program was built without its page: make web"

std::string unpacked(std::string_view packed) {
  std::string text(4 << 20, '\0');
  z_stream stream{};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  constexpr int kGzip = 16;
  EXPECT_EQ(inflateInit2(&stream, MAX_WBITS + kGzip), Z_OK);
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  text.resize(stream.total_out);
  inflateEnd(&stream);
  return text;
}

const PageFile& file_at(std::string_view path) {
  const std::span<const PageFile> files = page_files();
  const auto found = std::find_if(files.begin(), files.end(), [&](const PageFile& file) { return file.path == path; });
  EXPECT_NE(found, files.end()) << path;
  return *found;
}

TEST(PageFiles, HaveEveryFileThatTheFirstOneNames) {
  SKIP_WITHOUT_PAGE();
  const std::string index = unpacked(file_at("/index.html").gzip_bytes);
  EXPECT_EQ(file_at("/index.html").content_type, "text/html; charset=utf-8");
  EXPECT_TRUE(index.starts_with("<!doctype html>"));
  int named = 0;
  for (const char* name : {"page.js", "page.css", "theme.js", "icon.svg"}) {
    EXPECT_NE(index.find("\"" + std::string(name) + "\""), std::string::npos) << name;
    EXPECT_FALSE(unpacked(file_at("/" + std::string(name)).gzip_bytes).empty()) << name;
    ++named;
  }
  EXPECT_EQ(page_files().size(), static_cast<std::size_t>(named) + 1U);
  EXPECT_EQ(file_at("/page.css").content_type, "text/css; charset=utf-8");
  EXPECT_EQ(file_at("/page.js").content_type, "text/javascript; charset=utf-8");
}

// The policy that the page is sent with forbids scripts and styles inside of it, and anything from elsewhere.
TEST(PageFiles, BreakNoRuleOfTheirPolicy) {
  SKIP_WITHOUT_PAGE();
  const std::string index = unpacked(file_at("/index.html").gzip_bytes);
  EXPECT_EQ(index.find("<style"), std::string::npos);
  EXPECT_EQ(index.find(" style="), std::string::npos);
  EXPECT_EQ(index.find("://"), std::string::npos);
  for (std::size_t at = index.find("<script"); at != std::string::npos; at = index.find("<script", at + 1)) {
    EXPECT_EQ(index.compare(at, 12, "<script src="), 0) << index.substr(at, 40);
  }
}

TEST(PageFiles, AreSmallAndHaveTagsOfTheirOwn) {
  SKIP_WITHOUT_PAGE();
  std::size_t bytes = 0;
  std::set<std::string_view> tags;
  for (const PageFile& file : page_files()) {
    bytes += file.gzip_bytes.size();
    tags.insert(file.etag);
    EXPECT_TRUE(file.path.starts_with("/")) << file.path;
    EXPECT_TRUE(file.etag.size() > 10 && file.etag.starts_with("\"") && file.etag.ends_with("\"")) << file.etag;
  }
  EXPECT_EQ(tags.size(), page_files().size());
  EXPECT_LT(bytes, 300000U);
}

}  // namespace
}  // namespace routing::page_files_test
