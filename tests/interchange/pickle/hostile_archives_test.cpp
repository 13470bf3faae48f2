// Archives that are damaged or made to mislead.
#include "interchange/pickle/pickle_bytes.h"
#include "routing/core/error.h"
#include "routing/core/files.h"
#include "routing/interchange/pickle/torch_archive.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace routing::hostile_archives_test {
namespace {

const std::string kStorage(16, '\1');

std::string good_pickle() {
  return pickle_of(dictionary_of({{"w", tensor_of({})}}));
}

class HostileArchives : public testing::Test {
 protected:
  std::string refusal(const std::vector<ZipEntry>& entries) {
    write_archive(path_, entries);
    return refusal_of_file();
  }
  // Without waiting for the disk.
  void write(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }
  std::string refusal_of_file() const {
    return message_of<FileError>([&] { read_torch_archive(path_); });
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "a.pt";
};

TEST_F(HostileArchives, StoragesOfAnotherSizeAreRefused) {
  EXPECT_NE(refusal({{"a/data.pkl", good_pickle()}, {"a/data/0", std::string(12, '\1')}})
                .find("storage 0 has 12 bytes, but 4 numbers of float32"),
            std::string::npos);
  EXPECT_NE(refusal({{"a/data.pkl", good_pickle()}, {"a/data/0", std::string(17, '\1')}}).find("has 17 bytes"),
            std::string::npos);
  EXPECT_NE(refusal({{"a/data.pkl", good_pickle()}}).find("a/data/0: is not in the archive"), std::string::npos);
  const std::string upwards =
      pickle_of(dictionary_of({{"w", tensor_of({.storage = storage_of("FloatStorage", "../../x", 4)})}}));
  EXPECT_NE(refusal({{"a/data.pkl", upwards}, {"a/data/0", kStorage}}).find("is not in the archive"),
            std::string::npos);
}

TEST_F(HostileArchives, CompressedEntriesAreRefusedSoThatNoneCanGrow) {
  EXPECT_NE(refusal({{"a/data.pkl", good_pickle()}, {"a/data/0", std::string(1'000'000, '\0'), true}})
                .find("a/data/0: is compressed or encrypted (method 8)"),
            std::string::npos);
  EXPECT_NE(refusal({{"a/data.pkl", good_pickle() + std::string(1000, '\0'), true}, {"a/data/0", kStorage}})
                .find("data.pkl: is compressed"),
            std::string::npos);
}

TEST_F(HostileArchives, ManyNamesOfOneLargeStorageAreRefused) {
  const std::int64_t count = 100'000;
  const std::string shared = tensor_of(
      {.storage = storage_of("ByteStorage", "0", count), .size = numbers_of({count}), .stride = numbers_of({1})});
  std::string body = "}(" + string_of("first") + shared + "q\x01";
  for (int name = 0; name < 300; ++name) body += string_of(std::to_string(name)) + "h\x01";
  EXPECT_NE(refusal({{"a/data.pkl", pickle_of(body + "u")}, {"a/data/0", std::string(count, 'x')}})
                .find("more than 64 times"),
            std::string::npos);
}

TEST_F(HostileArchives, DamagedBytesDoNotPassTheirChecksum) {
  write_archive(path_, {{"a/data.pkl", good_pickle()}, {"a/data/0", kStorage}});
  EXPECT_EQ(read_torch_archive(path_).size(), 1U);
  const std::string good = read_file(path_);
  std::string bad = good;
  const std::size_t place = good.find(kStorage);
  ASSERT_NE(place, std::string::npos);
  bad[place + 3] = '\2';
  write(bad);
  EXPECT_NE(refusal_of_file().find("CRC error"), std::string::npos) << refusal_of_file();
  // However the file is cut or changed, nothing but a FileError comes out.
  for (std::size_t size = 0; size < good.size(); size += 3) {
    write(good.substr(0, size));
    EXPECT_THROW(read_torch_archive(path_), FileError) << size;
  }
  for (std::size_t byte = 0; byte < good.size(); byte += 3) {
    bad = good;
    bad[byte] = static_cast<char>(bad[byte] ^ 0x55);
    write(bad);
    try {
      const std::vector<TorchTensor> tensors = read_torch_archive(path_);
      // Dates, attributes and the like are in no tensor.
      ASSERT_EQ(tensors.size(), 1U) << byte;
      EXPECT_EQ(std::string(reinterpret_cast<const char*>(tensors[0].bytes.data()), 16), kStorage) << byte;
    } catch (const FileError&) {
    }
  }
}

TEST_F(HostileArchives, OtherFormatsAreNamed) {
  write(std::string("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15));
  EXPECT_NE(refusal_of_file().find("before torch 1.6"), std::string::npos);
  write("something else");
  EXPECT_NE(refusal_of_file().find("does not begin as a zip archive"), std::string::npos);
  write("");
  EXPECT_NE(refusal_of_file().find("does not begin as a zip archive"), std::string::npos);
  EXPECT_NE(refusal({{"a/data.pkl", good_pickle()}, {"a/constants.pkl", ""}, {"a/data/0", kStorage}})
                .find("TorchScript archive"),
            std::string::npos);
  EXPECT_NE(refusal({{"a/weights.bin", ""}}).find("has no data.pkl"), std::string::npos);
  EXPECT_NE(refusal({{"a/data.pkl", good_pickle()}, {"b/data.pkl", good_pickle()}}).find("has two pickles"),
            std::string::npos);
  EXPECT_NE(refusal({{"a/data.pkl", good_pickle()}, {"a/byteorder", "big"}, {"a/data/0", kStorage}})
                .find("byte order is 'big'"),
            std::string::npos);
  EXPECT_THROW(read_torch_archive(folder_ / "nothing.pt"), FileError);
}

TEST_F(HostileArchives, TwoEntriesOfOneNameAreRefused) {
  write_archive(path_, {{"a/data.pkl", good_pickle()}, {"a/data/0", kStorage}, {"a/data/1", kStorage}});
  std::string bytes = read_file(path_);
  for (std::size_t place = 0; (place = bytes.find("a/data/1", place)) != std::string::npos; ++place) {
    bytes[place + 7] = '0';
  }
  write(bytes);
  EXPECT_NE(refusal_of_file().find("has two entries 'a/data/0'"), std::string::npos);
}

}  // namespace
}  // namespace routing::hostile_archives_test
