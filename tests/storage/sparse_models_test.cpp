// Models beyond 4 GiB, most of which is a hole in the file: places and sizes that 32 bits do not hold.
#include "routing/core/error.h"
#include "routing/core/files.h"
#include "routing/storage/safetensors.h"
#include "routing/storage/safetensors_header.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fcntl.h>
#include <string>
#include <unistd.h>

namespace routing::sparse_models_test {
namespace {

constexpr std::uint64_t kHole = (std::uint64_t{1} << 32U) + 4096;

std::string header_text(std::uint64_t hole) {
  const std::string end = std::to_string(hole);
  std::string text = R"({"__metadata__":{"note":"far"},"after":{"dtype":"F32","shape":[2],"data_offsets":[)" + end +
                     "," + std::to_string(hole + 8) + R"(]},"before":{"dtype":"U8","shape":[)" + end +
                     R"(],"data_offsets":[0,)" + end + "]}}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

// A header that tells of a hole of so many bytes and of two numbers behind it, in a file that has so many bytes of
// data; false where the disk knows no holes of that size.
bool write_model(const std::filesystem::path& path, std::uint64_t told, std::uint64_t data) {
  const std::string header = header_text(told);
  std::string start(8, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(start.data(), &length, sizeof length);
  start += header;
  const auto end = static_cast<off_t>(start.size() + data);
  const float numbers[2] = {1.5F, -2.5F};
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const bool done = file >= 0 && ::ftruncate(file, end) == 0 &&
                    ::pwrite(file, start.data(), start.size(), 0) == static_cast<ssize_t>(start.size()) &&
                    (data < 8 || ::pwrite(file, numbers, sizeof numbers, end - 8) == 8);
  if (file >= 0) ::close(file);
  return done;
}

TEST(SparseModels, TensorsLieBeyondFourGibibytes) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "model.safetensors";
  if (!write_model(path, kHole, kHole + 8)) GTEST_SKIP() << "no room for a file with a hole";
  const MappedFile file(path);
  const SafetensorsHeader header = parse_safetensors_header(path, file.bytes());
  ASSERT_EQ(header.entries.size(), 2U);
  EXPECT_EQ(header.entries[0].name, "before");
  EXPECT_EQ(header.entries[0].end, kHole);
  EXPECT_EQ(header.entries[1].begin, kHole);
  float numbers[2] = {0.0F, 0.0F};
  std::memcpy(numbers, file.bytes().data() + header.data_begin + header.entries[1].begin, sizeof numbers);
  EXPECT_EQ(numbers[0], 1.5F);
  EXPECT_EQ(numbers[1], -2.5F);
  EXPECT_EQ(read_safetensors_metadata(path).at("note"), "far");
}

// To who counts in 32 bits each of these files is whole.
TEST(SparseModels, FilesThatLackFourGibibytesOrAByteAreRefused) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "model.safetensors";
  for (const std::uint64_t data : {kHole + 8 - (std::uint64_t{1} << 32U), kHole + 7}) {
    if (!write_model(path, kHole, data)) GTEST_SKIP() << "no room for a file with a hole";
    EXPECT_NE(message_of<FileError>([&] { read_safetensors_metadata(path); }).find(path.string()), std::string::npos);
    EXPECT_NE(message_of<FileError>([&] { read_safetensors(path); }).find(std::to_string(kHole + 8)),
              std::string::npos);
  }
}

}  // namespace
}  // namespace routing::sparse_models_test
