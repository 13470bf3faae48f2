// Tests of files, each in a folder of its own.
#pragma once

#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>

namespace routing {

class TemporaryFolderTest : public testing::Test {
 protected:
  const std::filesystem::path& folder() const { return folder_.path(); }

  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }

  static std::string as_text(std::span<const std::uint8_t> bytes) { return {bytes.begin(), bytes.end()}; }

 private:
  TemporaryFolder folder_;
};

}  // namespace routing
