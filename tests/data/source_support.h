// What a text source gives, for tests.
#pragma once

#include "routing/data/sources/source.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

namespace routing {

// The documents of a part, each put together from its pieces.
inline std::vector<std::string> documents_of(const TextSource& source, std::string_view part) {
  std::vector<std::string> documents;
  bool ended = true;
  source.read(part, [&](std::string_view text, bool ends_document) {
    if (ended) documents.emplace_back();
    documents.back() += text;
    ended = ends_document;
  });
  EXPECT_TRUE(ended) << "the last document of " << part << " has no end";
  return documents;
}

inline std::string contents_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// A folder of the real data, where there are any.
inline std::optional<std::filesystem::path> real_data(const std::string& name) {
  const char* const data = std::getenv("ROUTING_TEST_DATA");
  if (data == nullptr) return std::nullopt;
  return std::filesystem::path(data) / name;
}

}  // namespace routing
