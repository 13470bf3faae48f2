#include "routing/data/images/png_image.h"

#include "data/images/image_files.h"
#include "data/temporary_folder.h"
#include "routing/core/error.h"

#include <gtest/gtest.h>

#include <string>

namespace routing::png_image_test {
namespace {

class PngImageTest : public TemporaryFolderTest {
 protected:
  Image read(const std::string& file) const { return read_png(write("a.png", file)); }

  // Without the path and the colon behind it.
  std::string message(const std::string& file) const {
    const auto path = write("a.png", file);
    const std::string text = message_of<FileError>([&] { read_png(path); });
    EXPECT_TRUE(text.starts_with(path.string() + ": ")) << text;
    return text.substr(std::min(text.size(), path.string().size() + 2));
  }

  // Two rows of three pixels, values 1 to 18.
  static Image small_image() {
    Image image{.shape = {.height = 2, .width = 3}, .values = {}};
    for (std::uint8_t value = 1; value <= 18; ++value) image.values.push_back(value);
    return image;
  }
  static std::string small_lines() {
    return std::string("\0\x01\x02\x03\x04\x05\x06\x07\x08\x09", 10) +
           std::string("\0\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12", 10);
  }
  static std::string small_file() { return png_file({.height = 2, .width = 3}, small_lines()); }
};

TEST_F(PngImageTest, RowsOfRedGreenBlueComeAsTheyAre) {
  EXPECT_EQ(read(small_file()), small_image());
  EXPECT_EQ(read_png_shape(write("b.png", small_file())), (ImageShape{.height = 2, .width = 3}));
}

TEST_F(PngImageTest, FilesInMemoryAreReadAndWrittenAlike) {
  const std::vector<std::uint8_t> bytes = encode_png(small_image(), "memory");
  EXPECT_EQ(decode_png(std::as_bytes(std::span(bytes)), "memory"), small_image());
  const auto cut = std::as_bytes(std::span(bytes)).first(bytes.size() - 5);
  EXPECT_NE(message_of<FileError>([&] { decode_png(cut, "memory"); }).find("memory: is a damaged PNG image"),
            std::string::npos);
}

TEST_F(PngImageTest, ColourProfilesAndTextsChangeNothing) {
  const std::string extra = png_chunk("gAMA", big_endian(100'000)) + png_chunk("sRGB", std::string(1, '\0')) +
                            png_chunk("tEXt", std::string("Comment\0hello", 13)) +
                            png_chunk("zTXt", std::string("Comment\0\0", 9) + zlib_of(std::string(100, 'a')));
  EXPECT_EQ(read(png_file({.height = 2, .width = 3, .before_pixels = extra}, small_lines())), small_image());
}

TEST_F(PngImageTest, GreyIsGivenToAllThreeChannels) {
  const Image image = read(png_file({.height = 1, .width = 2, .colours = 0}, std::string("\0\x05\xff", 3)));
  EXPECT_EQ(image.values, (Values{5, 5, 5, 255, 255, 255}));
}

TEST_F(PngImageTest, OneBitOfGreyIsBlackOrWhite) {
  const Image image = read(png_file({.height = 1, .width = 3, .bits = 1, .colours = 0}, std::string("\0\xa0", 2)));
  EXPECT_EQ(image.values, (Values{255, 255, 255, 0, 0, 0, 255, 255, 255}));
}

TEST_F(PngImageTest, PaletteIsLookedUp) {
  const std::string palette = png_chunk("PLTE", std::string("\x0a\x0b\x0c\x14\x15\x16", 6));
  const Image image =
      read(png_file({.height = 1, .width = 2, .colours = 3, .before_pixels = palette}, std::string("\0\x01\0", 3)));
  EXPECT_EQ(image.values, (Values{20, 21, 22, 10, 11, 12}));
}

TEST_F(PngImageTest, InterlacedImageIsPutTogether) {
  // Seven passes; in two rows of three pixels (numbered row by row from 0) pass 1 has pixel 0, pass 4 (columns 2, 6, …
  // of rows 0, 4, …) has pixel 2, pass 6 (odd columns of even rows) pixel 1, and pass 7 the odd row. Others are empty.
  const std::string lines = std::string("\0\x01\x02\x03", 4) + std::string("\0\x07\x08\x09", 4) +
                            std::string("\0\x04\x05\x06", 4) +
                            std::string("\0\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12", 10);
  EXPECT_EQ(read(png_file({.height = 2, .width = 3, .interlaced = 1}, lines)), small_image());
}

TEST_F(PngImageTest, OpaqueAlphaIsDropped) {
  const Image colours =
      read(png_file({.height = 1, .width = 2, .colours = 6}, std::string("\0\x01\x02\x03\xff\x04\x05\x06\xff", 9)));
  EXPECT_EQ(colours.values, (Values{1, 2, 3, 4, 5, 6}));
  const Image grey = read(png_file({.height = 1, .width = 2, .colours = 4}, std::string("\0\x01\xff\x02\xff", 5)));
  EXPECT_EQ(grey.values, (Values{1, 1, 1, 2, 2, 2}));
}

TEST_F(PngImageTest, PixelThatIsNotOpaqueIsRefusedWithItsPlace) {
  const std::string remedy =
      ", but only opaque pixels (255) are read; put it on a background with: convert IMAGE -background white -flatten "
      "IMAGE.png";
  EXPECT_EQ(message(png_file({.height = 2, .width = 2, .colours = 4},
                             std::string("\0\x01\xff\x02\xff", 5) + std::string("\0\x01\xff\x02\xfe", 5))),
            "has alpha 254 at row 1, column 1" + remedy);
  // Transparency beside the pixels: the grey value 5 is clear.
  EXPECT_EQ(message(png_file({.height = 1, .width = 2, .colours = 0, .before_pixels = png_chunk("tRNS", {"\0\x05", 2})},
                             std::string("\0\x05\x06", 3))),
            "has alpha 0 at row 0, column 0" + remedy);
}

TEST_F(PngImageTest, SixteenBitsAreRefused) {
  EXPECT_EQ(message(png_file({.bits = 16}, std::string(7, '\0'))),
            "has 16 bits per channel, but 8 are expected; convert it with: convert IMAGE -depth 8 IMAGE.png");
}

TEST_F(PngImageTest, EmptyAndForeignFilesAreRefused) {
  EXPECT_EQ(message(""), "has 0 bytes, but a PNG image was expected; make it again");
  const std::string foreign = "is no PNG image; name PNG files only, or convert it with: convert IMAGE IMAGE.png";
  EXPECT_EQ(message("\x89PNG"), foreign);
  EXPECT_EQ(message("\xff\xd8\xff\xe0 this is a photograph"), foreign);
  const auto nowhere = folder() / "nowhere.png";
  EXPECT_EQ(message_of<FileError>([&] { read_png_shape(nowhere); }),
            nowhere.string() + ": cannot be read: No such file or directory; check the name");
}

TEST_F(PngImageTest, EveryCutIsFound) {
  const std::string whole = small_file();
  for (std::size_t length = 8; length < whole.size(); ++length) {
    EXPECT_EQ(message(whole.substr(0, length)), "is a damaged PNG image: it ends after " + std::to_string(length) +
                                                    " bytes, in the middle; fetch or make it again");
  }
}

TEST_F(PngImageTest, EveryChangedByteIsFound) {
  // Also in chunks that are not needed: what they say about transparency would be lost.
  const std::string extra = png_chunk("tRNS", std::string(6, '\0')) + png_chunk("tEXt", std::string("a\0b", 3));
  const std::string whole = png_file({.height = 2, .width = 3, .before_pixels = extra}, small_lines());
  EXPECT_EQ(read(whole), small_image());
  for (std::size_t index = 0; index < whole.size(); ++index) {
    for (const int flip : {1, 0x20, 0xff}) {
      std::string damaged = whole;
      damaged[index] = static_cast<char>(damaged[index] ^ flip);
      EXPECT_THROW(read(damaged), FileError) << "byte " << index << " with " << flip;
    }
  }
}

TEST_F(PngImageTest, DamageIsNamedWithItsPlace) {
  std::string damaged = small_file();
  damaged[45] = static_cast<char>(damaged[45] ^ 1);  // in the pixels
  const std::string text = message(damaged);
  EXPECT_TRUE(text.starts_with("is a damaged PNG image: ")) << text;
  EXPECT_NE(text.find(" near byte "), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("; fetch or make it again")) << text;
}

TEST_F(PngImageTest, TooFewRowsAreFound) {
  EXPECT_NE(message(png_file({.height = 3, .width = 3}, small_lines())).find("Not enough"), std::string::npos);
}

TEST_F(PngImageTest, HugeClaimsAreRefusedBeforeMemoryIsTaken) {
  EXPECT_EQ(message(png_file({.height = 0x7fffffff, .width = 0x7fffffff}, "")),
            "claims 2147483647 x 2147483647 pixels, but at most 8192 x 8192 are read; it is damaged, or shrink it");
  EXPECT_EQ(message(png_file({.height = 8192, .width = 8192}, "")),
            "claims 8192 x 8192 pixels, but its " + std::to_string(png_file({}, "").size()) +
                " bytes cannot hold them; it is damaged, make it again");
  EXPECT_NE(message(png_file({.height = 0, .width = 3}, "")).find("Invalid IHDR data"), std::string::npos);
}

TEST_F(PngImageTest, WrittenImageIsReadBack) {
  const auto path = folder() / "b.png";
  write_png(path, small_image());
  EXPECT_EQ(read_png(path), small_image());
  write_png(path, {.shape = {.height = 1, .width = 1}, .values = {0, 127, 255}});
  EXPECT_EQ(read_png(path).values, (Values{0, 127, 255}));
}

TEST_F(PngImageTest, ImagesThatDoNotFitTheirShapeAreNotWritten) {
  const auto path = folder() / "b.png";
  EXPECT_EQ(
      message_of<InputError>([&] { write_png(path, {.shape = {.height = 2, .width = 3}, .values = Values(17)}); }),
      path.string() + ": 17 values were given, but 2 x 3 pixels have 18; give red, green and blue of every pixel");
  EXPECT_EQ(message_of<InputError>([&] { write_png(path, {}); }),
            path.string() + ": an image of 0 x 0 pixels was given, but 1 to 8192 rows and columns can be written");
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(PngImageTest, FolderThatIsNotThereIsAFileError) {
  EXPECT_THROW(write_png(folder() / "nowhere" / "b.png", small_image()), FileError);
}

TEST_F(PngImageTest, RealImagesAreTheSameAfterWritingThem) {
  const auto data = real_images("imagenet64");
  if (data.empty()) GTEST_SKIP() << "imagenet64 is not in ROUTING_TEST_DATA";
  int images = 0;
  for (const auto& entry : std::filesystem::directory_iterator(data / "valid_64x64")) {
    const Image image = read_png(entry.path());
    ASSERT_EQ(image.shape, (ImageShape{.height = 64, .width = 64}));
    write_png(folder() / "b.png", image);
    ASSERT_EQ(read_png(folder() / "b.png"), image) << entry.path();
    if (++images == 50) break;
  }
  EXPECT_EQ(images, 50);
}

}  // namespace
}  // namespace routing::png_image_test
