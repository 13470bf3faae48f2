#include "routing/data/images/image_folder.h"

#include "data/images/image_files.h"
#include "data/temporary_folder.h"
#include "routing/core/error.h"
#include "routing/data/images/png_folders.h"

#include <gtest/gtest.h>

#include <string>

namespace routing::image_folder_test {
namespace {

class ImageFolderTest : public TemporaryFolderTest {
 protected:
  void make_folder(const std::string& name) const { std::filesystem::create_directory(folder() / name); }

  // The first value of every image tells them apart.
  static std::vector<int> first_values(const ImageSource& source, std::string_view part) {
    std::vector<int> values;
    for (const Values& image : all_images(source, part)) values.push_back(image.at(0));
    return values;
  }
};

TEST_F(ImageFolderTest, FolderOfImagesIsOnePartInTheOrderOfBytes) {
  write("b.png", plain_png(2, 3, 1));
  write("a.png", plain_png(2, 3, 2));
  write("Z.PNG", plain_png(2, 3, 3));
  write("10.png", plain_png(2, 3, 4));
  write("9.png", plain_png(2, 3, 5));
  write("\xc3\xa4.png", plain_png(2, 3, 6));
  const auto source = open_image_folder(folder());
  EXPECT_EQ(source->shape(), (ImageShape{.height = 2, .width = 3}));
  EXPECT_EQ(source->images("train"), 6);
  EXPECT_EQ(first_values(*source, "train"), (std::vector{4, 5, 3, 2, 1, 6}));
  EXPECT_EQ(source->facts().format, "images");
  EXPECT_EQ(source->facts().missing, "");
  ASSERT_EQ(source->facts().parts.size(), 1U);
  EXPECT_EQ(source->facts().parts[0].files, std::vector{folder()});
}

TEST_F(ImageFolderTest, OtherFilesHiddenFilesAndFoldersArePassedOver) {
  write("a.png", plain_png(2, 3, 1));
  write("._a.png", "what macOS leaves behind");
  write(".png", "no name");
  write("list.txt", "a.png");
  make_folder("more.png");
  EXPECT_EQ(first_values(*open_image_folder(folder()), "train"), std::vector{1});
}

TEST_F(ImageFolderTest, FoldersInsideAreParts) {
  for (const char* const name : {"train", "test", "validation"}) make_folder(name);
  write("train/a.png", plain_png(2, 2, 1));
  write("validation/a.png", plain_png(2, 2, 2));
  write("test/a.png", plain_png(2, 2, 3));
  write("beside.png", plain_png(2, 2, 9));
  const auto source = open_image_folder(folder());
  ASSERT_EQ(source->facts().parts.size(), 3U);
  EXPECT_EQ(source->facts().parts[1].name, "valid");
  EXPECT_EQ(source->facts().parts[1].files, std::vector{folder() / "validation"});
  EXPECT_EQ(first_values(*source, "train"), std::vector{1});
  EXPECT_EQ(first_values(*source, "valid"), std::vector{2});
  EXPECT_EQ(first_values(*source, "test"), std::vector{3});
}

TEST_F(ImageFolderTest, TwoFoldersForOnePartAreRefused) {
  for (const char* const name : {"train", "valid", "val"}) make_folder(name);
  EXPECT_EQ(message_of<FileError>([&] { open_image_folder(folder()); }),
            folder().string() +
                ": has both valid and val, but only one folder can be the part valid; move the other one elsewhere");
}

TEST_F(ImageFolderTest, ImageOfAnotherSizeIsRefusedWhenItIsRead) {
  write("a.png", plain_png(2, 3, 1));
  write("b.png", plain_png(3, 2, 1));
  const auto source = open_image_folder(folder());
  EXPECT_EQ(source->images("train"), 2);
  EXPECT_EQ(message_of<FileError>([&] { all_images(*source, "train"); }),
            (folder() / "b.png").string() + ": is 3 x 2 pixels, but 2 x 3 were expected as in " +
                (folder() / "a.png").string() +
                "; bring all images to one size (height x width), or move this one elsewhere");
}

TEST_F(ImageFolderTest, PartOfAnotherSizeIsRefusedAtOnce) {
  make_folder("train");
  make_folder("test");
  write("train/a.png", plain_png(2, 2, 1));
  write("test/a.png", plain_png(4, 4, 1));
  EXPECT_EQ(message_of<FileError>([&] { open_image_folder(folder()); }),
            (folder() / "test/a.png").string() + ": is 4 x 4 pixels, but 2 x 2 were expected as in " +
                (folder() / "train/a.png").string() +
                "; bring all images to one size (height x width), or move this one elsewhere");
}

TEST_F(ImageFolderTest, OpeningReadsOnlyTheFirstImage) {
  write("a.png", plain_png(2, 3, 1));
  write("b.png", "no image");
  const auto source = open_image_folder(folder());
  EXPECT_EQ(source->images("train"), 2);
  EXPECT_EQ(message_of<FileError>([&] { all_images(*source, "train"); }),
            (folder() / "b.png").string() +
                ": is no PNG image; name PNG files only, or convert it with: convert IMAGE IMAGE.png");
}

TEST_F(ImageFolderTest, FoldersWithoutImagesAreRefused) {
  EXPECT_EQ(message_of<FileError>([&] { open_image_folder(folder()); }),
            folder().string() + ": has no PNG image in it; put files *.png there");
  const auto nowhere = folder() / "nowhere";
  EXPECT_EQ(message_of<FileError>([&] { open_image_folder(nowhere); }),
            nowhere.string() + ": cannot be listed: No such file or directory; name a folder that you may read");
  const auto file = write("a.png", plain_png(2, 3, 1));
  EXPECT_EQ(message_of<FileError>([&] { open_image_folder(file); }),
            file.string() + ": cannot be listed: Not a directory; name a folder that you may read");
}

TEST_F(ImageFolderTest, NamesAreKeptWithoutTheirFolder) {
  write("2.png", "");
  write("1.png", "");
  const PngNames names(folder());
  EXPECT_EQ(names.size(), 2);
  EXPECT_EQ(names[0], folder() / "1.png");
  EXPECT_EQ(names[1], folder() / "2.png");
}

TEST_F(ImageFolderTest, SourceNeedsAPart) {
  EXPECT_EQ(message_of<InputError>([] { PngFolders("images", {}); }), "a source of images needs at least one part");
}

}  // namespace
}  // namespace routing::image_folder_test
