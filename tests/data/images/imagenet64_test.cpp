#include "routing/data/images/imagenet64.h"

#include "data/images/zip_files.h"
#include "data/temporary_folder.h"
#include "routing/core/error.h"

#include <gtest/gtest.h>

#include <string>

namespace routing::imagenet64_test {
namespace {

constexpr std::size_t kPixels = 64 * 64;

class Imagenet64Test : public TemporaryFolderTest {
 protected:
  void make_folder(const std::string& name) const { std::filesystem::create_directory(folder() / name); }

  // Rows of images: all reds the given value, all greens one more, all blues 0, 1, 2, … (wrapped at 256).
  static std::string npz_of(const std::vector<int>& reds) {
    std::string numbers;
    for (const int red : reds) {
      numbers += std::string(kPixels, static_cast<char>(red)) + std::string(kPixels, static_cast<char>(red + 1));
      for (std::size_t pixel = 0; pixel < kPixels; ++pixel) numbers += static_cast<char>(pixel);
    }
    return zip_file({{.content = npy_of(static_cast<std::int64_t>(reds.size()), 12288, numbers), .deflate = true}});
  }

  static std::vector<int> reds_of(const ImageSource& source, std::string_view part) {
    std::vector<int> reds;
    for (const Values& image : all_images(source, part)) reds.push_back(image.at(0));
    EXPECT_EQ(source.images(part), static_cast<std::int64_t>(reds.size()));
    return reds;
  }

  static std::string message(const std::filesystem::path& path) {
    return message_of<FileError>([&] { open_imagenet64(path); });
  }
};

TEST_F(Imagenet64Test, ValidationImagesAreTheTestPartBesideTrainImages) {
  make_folder("train_64x64");
  make_folder("valid_64x64");
  write("train_64x64/2.png", plain_png(64, 64, 2));
  write("train_64x64/1.png", plain_png(64, 64, 1));
  write("valid_64x64/1.png", plain_png(64, 64, 3));
  const auto source = open_imagenet64(folder());
  EXPECT_EQ(source->shape(), (ImageShape{.height = 64, .width = 64}));
  EXPECT_EQ(source->facts().format, "imagenet64");
  EXPECT_EQ(source->facts().missing, "2 of 1281149 train images, 1 of 49999 valid images");
  EXPECT_EQ(reds_of(*source, "train"), (std::vector{1, 2}));
  EXPECT_EQ(reds_of(*source, "test"), (std::vector{3}));
  EXPECT_EQ(source->facts().part("valid"), nullptr);
}

TEST_F(Imagenet64Test, ValidationImagesAloneAreTheTrainPart) {
  make_folder("valid_64x64");
  write("valid_64x64/1.png", plain_png(64, 64, 3));
  write("val_data.npz", npz_of({9}));  // PNG goes first
  const auto source = open_imagenet64(folder());
  ASSERT_EQ(source->facts().parts.size(), 1U);
  EXPECT_EQ(reds_of(*source, "train"), (std::vector{3}));
  EXPECT_EQ(source->facts().missing, "no train_64x64, 1 of 49999 valid images");
}

TEST_F(Imagenet64Test, TrainImagesAloneMissTheValidationImages) {
  make_folder("train_64x64");
  write("train_64x64/1.png", plain_png(64, 64, 3));
  EXPECT_EQ(open_imagenet64(folder())->facts().missing, "1 of 1281149 train images, no valid_64x64");
}

TEST_F(Imagenet64Test, ImagesOfOtherSizesAreRefused) {
  make_folder("valid_64x64");
  write("valid_64x64/1.png", plain_png(32, 32, 3));
  EXPECT_EQ(message(folder()), (folder() / "valid_64x64/1.png").string() +
                                   ": is 32 x 32 pixels, but images of ImageNet-64 are 64 x 64; set data.format to "
                                   "images for folders of other sizes");
}

TEST_F(Imagenet64Test, BatchesAreReadInTheOrderOfTheirNumbers) {
  write("train_data_batch_10.npz", npz_of({10}));
  write("train_data_batch_2.npz", npz_of({2, 3}));
  write("val_data.npz", npz_of({50}));
  const auto source = open_imagenet64(folder());
  EXPECT_EQ(reds_of(*source, "train"), (std::vector{2, 3, 10}));
  EXPECT_EQ(reds_of(*source, "test"), (std::vector{50}));
  EXPECT_EQ(source->facts().missing, "3 of 1281167 train images, 1 of 50000 valid images");
  EXPECT_EQ(source->facts().parts[0].files,
            (std::vector{folder() / "train_data_batch_2.npz", folder() / "train_data_batch_10.npz"}));
}

TEST_F(Imagenet64Test, PlanesOfARowBecomePixels) {
  write("train_data_batch_1.npz", npz_of({7}));
  const Values image = all_images(*open_imagenet64(folder()), "train").at(0);
  ASSERT_EQ(image.size(), 12288U);
  EXPECT_EQ(Values(image.begin(), image.begin() + 6), (Values{7, 8, 0, 7, 8, 1}));
  EXPECT_EQ(Values(image.end() - 3, image.end()), (Values{7, 8, 255}));
}

TEST_F(Imagenet64Test, SingleArchiveIsTakenByItsName) {
  const auto valid = open_imagenet64(write("val_data.npz", npz_of({50})));
  EXPECT_EQ(reds_of(*valid, "train"), (std::vector{50}));
  EXPECT_EQ(valid->facts().missing, "no train_data_batch_*.npz, 1 of 50000 valid images");
  const auto train = open_imagenet64(write("train_data_batch_3.npz", npz_of({3})));
  EXPECT_EQ(reds_of(*train, "train"), (std::vector{3}));
  EXPECT_EQ(train->facts().missing, "1 of 1281167 train images, no val_data.npz");
}

TEST_F(Imagenet64Test, BatchesOfSmallerImagesAreRefused) {
  const auto path = write("val_data.npz", zip_file({{.content = npy_of(1, 3072, std::string(3072, 'a'))}}));
  EXPECT_EQ(message(folder()), path.string() +
                                   ": data.npy: shape is (1, 3072), but N x 12288 uint8 was expected; check that these "
                                   "are images of this size, one per row");
}

TEST_F(Imagenet64Test, ArchiveThatChangedSinceOpeningIsRefused) {
  const auto path = write("val_data.npz", npz_of({50}));
  const auto source = open_imagenet64(folder());
  write("val_data.npz", npz_of({50, 51}));
  EXPECT_EQ(message_of<FileError>([&] { all_images(*source, "train"); }),
            path.string() + ": has 2 rows, but had 1 when it was opened; leave it alone and start again");
}

TEST_F(Imagenet64Test, PathsWithNeitherVersionAreRefused) {
  EXPECT_EQ(
      message(folder()),
      folder().string() +
          ": has neither train_64x64 or valid_64x64 with PNG files nor train_data_batch_1.npz to "
          "train_data_batch_10.npz or val_data.npz; unpack ImageNet 64x64 there (pickled batches without .npz are "
          "not read), or set data.format to images for other folders");
  const auto file = write("train_data_batch_1", "");
  EXPECT_EQ(message(file),
            file.string() + ": is not a folder and does not end in .npz; name a folder, or one of the files *.npz");
  const auto nowhere = folder() / "nowhere";
  EXPECT_EQ(message(nowhere),
            nowhere.string() +
                ": is not there or may not be read; name the folder with train_64x64 and valid_64x64, "
                "or with the files *.npz");
}

TEST_F(Imagenet64Test, RealPngFilesHaveTheChecksumOfAnotherReader) {
  const auto data = real_images("imagenet64");
  if (data.empty()) GTEST_SKIP() << "imagenet64 is not in ROUTING_TEST_DATA";
  const auto source = open_imagenet64(data);
  EXPECT_EQ(source->images("train"), 600);
  EXPECT_EQ(source->facts().missing, "no train_64x64, 600 of 49999 valid images");
  EXPECT_EQ(checksum(*source, "train"), 0xc5c135feU);  // Python's PIL
}

TEST_F(Imagenet64Test, RealArchiveHasTheChecksumOfNumpy) {
  const auto data = real_images("imagenet64");
  if (data.empty()) GTEST_SKIP() << "imagenet64 is not in ROUTING_TEST_DATA";
  const auto source = open_imagenet64(data / "val_data.npz");
  EXPECT_EQ(source->images("train"), 600);
  EXPECT_EQ(source->facts().missing, "no train_data_batch_*.npz, 600 of 50000 valid images");
  EXPECT_EQ(checksum(*source, "train"), 0x94811a59U);
}

}  // namespace
}  // namespace routing::imagenet64_test
