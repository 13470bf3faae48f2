#include "routing/data/images/cifar10.h"

#include "data/images/image_files.h"
#include "data/temporary_folder.h"
#include "routing/core/error.h"
#include "routing/data/images/image.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace routing::cifar10_test {
namespace {

constexpr std::size_t kPixels = 1024;

class Cifar10Test : public TemporaryFolderTest {
 protected:
  // Reds 1, 2, 3, … (wrapped at 256), greens all `green`, blues all 7.
  static std::string record(char label, char green) {
    std::string bytes(1, label);
    for (std::size_t pixel = 0; pixel < kPixels; ++pixel) bytes += static_cast<char>(pixel + 1);
    return bytes + std::string(kPixels, green) + std::string(kPixels, '\x07');
  }

  std::string message(const std::filesystem::path& path) const {
    return message_of<FileError>([&] { all_images(*open_cifar10(path), "train"); });
  }
};

TEST_F(Cifar10Test, PlanesBecomePixelsInRasterOrder) {
  write("data_batch_1.bin", record(3, 100) + record(9, 101));
  const auto source = open_cifar10(folder());
  EXPECT_EQ(source->shape(), (ImageShape{.height = 32, .width = 32}));
  EXPECT_EQ(source->images("train"), 2);
  const std::vector<Values> images = all_images(*source, "train");
  ASSERT_EQ(images.size(), 2U);
  ASSERT_EQ(images[0].size(), 3072U);
  const Values begin(images[0].begin(), images[0].begin() + 6);
  EXPECT_EQ(begin, (Values{1, 100, 7, 2, 100, 7}));
  // Pixel 33 is the second of the second row.
  const Values second_row(images[1].begin() + 99, images[1].begin() + 102);
  EXPECT_EQ(second_row, (Values{34, 101, 7}));
}

TEST_F(Cifar10Test, BatchesAreReadInOrderAndTheTestBatchIsApart) {
  write("data_batch_4.bin", record(0, 4));
  write("test_batch.bin", record(0, 9) + record(1, 10));
  write("data_batch_2.bin", record(0, 2));
  const auto source = open_cifar10(folder());
  const SourceFacts& facts = source->facts();
  EXPECT_EQ(facts.format, "cifar10");
  ASSERT_EQ(facts.parts.size(), 2U);
  EXPECT_EQ(facts.parts[0].name, "train");
  EXPECT_EQ(facts.parts[1].name, "test");
  EXPECT_EQ(facts.parts[0].files, (std::vector{folder() / "data_batch_2.bin", folder() / "data_batch_4.bin"}));
  const auto train = all_images(*source, "train");
  ASSERT_EQ(train.size(), 2U);
  EXPECT_EQ(train[0][1], 2);
  EXPECT_EQ(train[1][1], 4);
  EXPECT_EQ(source->images("test"), 2);
  EXPECT_EQ(all_images(*source, "test")[1][1], 10);
  EXPECT_EQ(facts.missing,
            "2 of 5 train batches, 1 of 10000 records in data_batch_2.bin, 1 of 10000 records in data_batch_4.bin, "
            "2 of 10000 records in test_batch.bin");
}

TEST_F(Cifar10Test, WholeSetMissesNothing) {
  for (const char* const name : {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                                 "data_batch_5.bin", "test_batch.bin"}) {
    write(name, "");
    // Holes take no space.
    std::filesystem::resize_file(folder() / name, 30'730'000);
  }
  const auto source = open_cifar10(folder());
  EXPECT_EQ(source->facts().missing, "");
  EXPECT_EQ(source->images("train"), 50'000);
  EXPECT_EQ(source->images("test"), 10'000);
  EXPECT_EQ(source->facts().part("valid"), nullptr);
}

TEST_F(Cifar10Test, FolderInsideTheGivenOneIsFound) {
  std::filesystem::create_directory(folder() / "cifar-10-batches-bin");
  write("cifar-10-batches-bin/data_batch_1.bin", record(5, 55));
  EXPECT_EQ(all_images(*open_cifar10(folder()), "train")[0][1], 55);
}

TEST_F(Cifar10Test, SingleFileIsThePartItsNameSays) {
  const auto train = open_cifar10(write("data_batch_3.bin", record(5, 55)));
  EXPECT_EQ(train->images("train"), 1);
  EXPECT_EQ(train->facts().parts.size(), 1U);
  EXPECT_EQ(train->facts().missing, "1 of 5 train batches, no test_batch.bin, 1 of 10000 records in data_batch_3.bin");
  const auto test = open_cifar10(write("test_batch.bin", record(5, 56)));
  EXPECT_EQ(test->images("test"), 1);
  EXPECT_EQ(test->facts().part("train"), nullptr);
}

TEST_F(Cifar10Test, PartThatIsNotThereIsRefusedWithThoseThatAre) {
  write("data_batch_1.bin", record(3, 100));
  const auto source = open_cifar10(folder());
  EXPECT_EQ(message_of<InputError>([&] { source->images("test"); }),
            "the part \"test\" is not in these cifar10 data, which have train; ask for one of those");
  EXPECT_EQ(message_of<InputError>([&] { all_images(*source, "valid"); }),
            "the part \"valid\" is not in these cifar10 data, which have train; ask for one of those");
}

TEST_F(Cifar10Test, CutFileIsRefusedWithWhatIsWhole) {
  const auto path = write("data_batch_1.bin", record(3, 100) + record(9, 101).substr(0, 3072));
  EXPECT_EQ(message(folder()), path.string() +
                                   ": has 6145 bytes, but 10000 records of 3073 bytes = 30730000 bytes were expected; "
                                   "it is whole for 1 records, 3072 bytes follow; fetch it again, or cut it after a "
                                   "whole record");
  write("data_batch_1.bin", "");
  EXPECT_EQ(message(folder()), path.string() +
                                   ": has 0 bytes, but 10000 records of 3073 bytes = 30730000 bytes were expected; it "
                                   "is whole for 0 records, 0 bytes follow; fetch it again, or cut it after a whole "
                                   "record");
}

TEST_F(Cifar10Test, LabelAboveNineIsRefusedWithItsRecord) {
  const auto path = write("data_batch_1.bin", record(0, 0) + record(9, 0) + record(10, 0));
  EXPECT_EQ(message(folder()), path.string() +
                                   ": record 2 (counted from 0) has label 10, but 0 to 9 were expected; this is not "
                                   "CIFAR-10's binary version, or it is damaged; fetch cifar-10-binary.tar.gz again");
}

TEST_F(Cifar10Test, FileThatChangedSinceOpeningIsRefused) {
  const auto path = write("data_batch_1.bin", record(0, 0));
  const auto source = open_cifar10(folder());
  write("data_batch_1.bin", record(0, 0) + record(0, 0));
  EXPECT_EQ(message_of<FileError>([&] { all_images(*source, "train"); }),
            path.string() + ": has 2 records, but had 1 when it was opened; leave it alone and start again");
}

TEST_F(Cifar10Test, FoldersAndNamesWithoutBatchesAreRefused) {
  EXPECT_EQ(message(folder()), folder().string() +
                                   ": has none of data_batch_1.bin to data_batch_5.bin and test_batch.bin, nor has a "
                                   "folder cifar-10-batches-bin in it; unpack cifar-10-binary.tar.gz there (the Python "
                                   "and Matlab versions are not read)");
  const auto other = write("train.bin", record(0, 0));
  EXPECT_EQ(message(other),
            other.string() +
                ": is called train.bin, but data_batch_1.bin to data_batch_5.bin or test_batch.bin were "
                "expected; rename it if it is one of these, or name their folder");
  EXPECT_EQ(message(folder() / "nowhere"), (folder() / "nowhere").string() +
                                               ": is not there or may not be read; name the folder with "
                                               "data_batch_1.bin, or one of its files");
}

TEST_F(Cifar10Test, RealBatchesHaveTheChecksumsOfNumpy) {
  const auto data = real_images("cifar10");
  if (data.empty()) GTEST_SKIP() << "cifar10 is not in ROUTING_TEST_DATA";
  const auto source = open_cifar10(data);
  EXPECT_EQ(source->images("train"), 10'000);
  EXPECT_EQ(source->images("test"), 10'000);
  EXPECT_EQ(source->facts().missing, "1 of 5 train batches");
  EXPECT_EQ(checksum(*source, "train"), 0x1fc70812U);
  EXPECT_EQ(checksum(*source, "test"), 0xaf4814f5U);
}

TEST_F(Cifar10Test, RealRecordsComeBackFromRasterToPlanes) {
  const auto data = real_images("cifar10");
  if (data.empty()) GTEST_SKIP() << "cifar10 is not in ROUTING_TEST_DATA";
  std::ifstream file(data / "data_batch_1.bin", std::ios::binary);
  Values expected(3073);
  Values planar(3072);
  std::int64_t same = 0;
  open_cifar10(data)->read("train", [&](std::span<const std::uint8_t> values) {
    file.read(reinterpret_cast<char*>(expected.data()), 3073);
    planar_from_raster(values, planar);
    same += std::equal(planar.begin(), planar.end(), expected.begin() + 1) ? 1 : 0;
  });
  EXPECT_EQ(same, 10'000);
}

}  // namespace
}  // namespace routing::cifar10_test
