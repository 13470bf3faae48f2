#include "routing/data/images/npz.h"

#include "data/images/zip_files.h"
#include "data/temporary_folder.h"
#include "routing/core/error.h"

#include <gtest/gtest.h>

#include <string>

namespace routing::npz_test {
namespace {

class NpzTest : public TemporaryFolderTest {
 protected:
  static std::vector<Values> rows_of(const std::filesystem::path& path, std::int64_t columns) {
    NpzRows rows(path, "data", columns);
    std::vector<Values> all;
    Values row(static_cast<std::size_t>(columns));
    while (rows.next(row)) all.push_back(row);
    EXPECT_EQ(rows.rows(), static_cast<std::int64_t>(all.size()));
    EXPECT_FALSE(rows.next(row));
    return all;
  }
  std::vector<Values> rows_of(const ZipEntry& entry, std::int64_t columns) const {
    return rows_of(write("a.npz", zip_file({entry})), columns);
  }

  // What opening says, without the path and the colon behind it.
  std::string opening_bytes(const std::string& file) const {
    const auto path = write("a.npz", file);
    return without(path, message_of<FileError>([&] { NpzRows(path, "data", 3); }));
  }
  std::string opening(const ZipEntry& entry) const { return opening_bytes(zip_file({entry})); }

  // What reading says of a file that can be opened.
  std::string reading(const ZipEntry& entry) const {
    const auto path = write("a.npz", zip_file({entry}));
    NpzRows rows(path, "data", 3);
    Values row(3);
    return without(path, message_of<FileError>([&] {
                     while (rows.next(row)) {
                     }
                   }));
  }

  static std::string without(const std::filesystem::path& path, const std::string& text) {
    EXPECT_TRUE(text.starts_with(path.string() + ": ")) << text;
    return text.substr(std::min(text.size(), path.string().size() + 2));
  }
};

TEST_F(NpzTest, StoredRowsComeOneByOne) {
  EXPECT_EQ(rows_of({.content = npy_of(2, 3, "abcdef")}, 3), (std::vector<Values>{{'a', 'b', 'c'}, {'d', 'e', 'f'}}));
}

TEST_F(NpzTest, DeflatedRowsComeOneByOne) {
  std::string numbers;
  for (unsigned index = 0; index < 300'000; ++index) numbers += static_cast<char>(index * index / 7);
  const auto rows = rows_of({.content = npy_of(1000, 300, numbers), .deflate = true}, 300);
  ASSERT_EQ(rows.size(), 1000U);
  std::string found;
  for (const Values& row : rows) found.append(row.begin(), row.end());
  EXPECT_EQ(found, numbers);
}

TEST_F(NpzTest, OtherArraysBesideTheDataDoNotMatter) {
  const auto path = write("a.npz", zip_file({{.name = "labels.npy", .content = npy_of(1, 3, "xyz")},
                                             {.content = npy_of(1, 3, "abc"), .deflate = true},
                                             {.name = "mean.npy", .content = "whatever"}}));
  EXPECT_EQ(rows_of(path, 3), (std::vector<Values>{{'a', 'b', 'c'}}));
}

TEST_F(NpzTest, VersionsTwoAndThreeHaveALongerLength) {
  for (const char version : {'\2', '\3'}) {
    const std::string file = npy_file("{'descr': '|u1', 'fortran_order': False, 'shape': (1, 3), }", "abc", version);
    EXPECT_EQ(rows_of({.content = file}, 3), (std::vector<Values>{{'a', 'b', 'c'}}));
  }
}

TEST_F(NpzTest, RowOfAnotherLengthIsRefused) {
  const auto path = write("a.npz", zip_file({{.content = npy_of(1, 3, "abc")}}));
  NpzRows rows(path, "data", 3);
  Values row(4);
  EXPECT_EQ(message_of<InputError>([&] { rows.next(row); }),
            path.string() + ": data.npy: a row has 3 values, but space for 4 was given");
  EXPECT_EQ(message_of<InputError>([&] { NpzRows(path, "data", 0); }),
            path.string() + ": data.npy: 0 columns were asked for; give at least 1");
}

TEST_F(NpzTest, FilesThatAreNoArchivesAreRefused) {
  EXPECT_EQ(opening_bytes(""), "has 0 bytes, but a NumPy archive was expected; fetch it again");
  const std::string foreign = "is not a zip archive, as NumPy's .npz files are, or its end is cut off; fetch it again";
  EXPECT_EQ(opening_bytes("no archive at all, but long enough for the end of one"), foreign);
  const std::string whole = zip_file({{.content = npy_of(2, 3, "abcdef")}});
  EXPECT_EQ(opening_bytes(whole.substr(0, whole.size() / 2)), foreign);
  const auto nowhere = folder() / "nowhere.npz";
  EXPECT_EQ(message_of<FileError>([&] { NpzRows(nowhere, "data", 3); }),
            nowhere.string() + ": cannot be read: No such file or directory; check the name");
}

TEST_F(NpzTest, EveryCutIsFound) {
  const std::string whole = zip_file({{.content = npy_of(2, 3, "abcdef"), .deflate = true}});
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const auto path = write("a.npz", whole.substr(0, length));
    EXPECT_THROW(rows_of(path, 3), FileError) << length;
  }
}

TEST_F(NpzTest, ChangedBytesNeverGiveOtherRows) {
  const std::string whole = zip_file({{.content = npy_of(2, 3, "abcdef"), .deflate = true}});
  int refused = 0;
  for (std::size_t index = 0; index < whole.size(); ++index) {
    for (const int flip : {1, 0x80, 0xff}) {
      std::string damaged = whole;
      damaged[index] = static_cast<char>(damaged[index] ^ flip);
      const auto path = write("a.npz", damaged);
      try {
        EXPECT_EQ(rows_of(path, 3), (std::vector<Values>{{'a', 'b', 'c'}, {'d', 'e', 'f'}})) << index;
      } catch (const FileError&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, static_cast<int>(whole.size()));
}

TEST_F(NpzTest, ArchiveWithoutTheArrayIsRefused) {
  EXPECT_EQ(opening({.name = "images.npy", .content = npy_of(1, 3, "abc")}),
            "has no array data.npy in it; save the images as data with numpy.savez");
}

TEST_F(NpzTest, OtherTypesOrdersAndShapesAreRefused) {
  const auto with = [&](const std::string& descr, const std::string& order, const std::string& shape) {
    return opening(
        {.content = npy_file("{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }",
                             "abcdef")});
  };
  EXPECT_EQ(with("<f4", "False", "(2, 3)"),
            "data.npy: dtype is '<f4', but '|u1' (uint8) was expected; save it again as uint8 with numpy.savez");
  EXPECT_EQ(with("|u1", "True", "(2, 3)"),
            "data.npy: is in Fortran order, but C order was expected; save numpy.ascontiguousarray of it");
  const std::string rest = ", but N x 3 uint8 was expected; check that these are images of this size, one per row";
  EXPECT_EQ(with("|u1", "False", "(3, 2)"), "data.npy: shape is (3, 2)" + rest);
  EXPECT_EQ(with("|u1", "False", "(6,)"), "data.npy: shape is (6,)" + rest);
  EXPECT_EQ(with("|u1", "False", "(2, 3, 1)"), "data.npy: shape is (2, 3, 1)" + rest);
  EXPECT_EQ(with("|u1", "False", "(0, 3)"), "data.npy: shape is (0, 3)" + rest);
}

TEST_F(NpzTest, ShapeMustFitTheDeclaredSize) {
  const std::string rest = "; the archive is damaged or a trap, fetch it again";
  EXPECT_EQ(opening({.content = npy_of(3, 3, "abcdef")}),
            "data.npy: shape is (3, 3), but the archive declares 6 bytes of data, which are 2 rows and 0 bytes" + rest);
  EXPECT_EQ(opening({.content = npy_of(2, 3, "abcdefg")}),
            "data.npy: shape is (2, 3), but the archive declares 7 bytes of data, which are 2 rows and 1 bytes" + rest);
  // Times 3 this is 2 modulo 2^64.
  EXPECT_EQ(
      opening({.content = npy_of(6148914691236517206, 3, "ab")}),
      "data.npy: shape is (6148914691236517206, 3), but the archive declares 2 bytes of data, which are 0 rows and "
      "2 bytes" +
          rest);
}

TEST_F(NpzTest, SizesThatCannotBeAreRefusedBeforeInflating) {
  const std::string content = npy_of(2, 3, "abcdef");
  EXPECT_EQ(opening({.content = content, .declared_size = 4'000'000'000U}),
            "data.npy: declares 4000000000 bytes, but the " + std::to_string(content.size()) +
                " it has in the archive make at most " + std::to_string(content.size()) +
                "; the archive is damaged or a trap, fetch it again");
  const std::size_t packed = deflated(content).size();
  EXPECT_EQ(opening({.content = content, .deflate = true, .declared_size = 4'000'000'000U}),
            "data.npy: declares 4000000000 bytes, but the " + std::to_string(packed) +
                " it has in the archive make at most " + std::to_string(1032 * packed) +
                "; the archive is damaged or a trap, fetch it again");
}

TEST_F(NpzTest, ArrayLargerThanItsArchiveIsRefused) {
  const ZipEntry entry{.content = npy_of(2, 3, "abcdef"), .deflate = true, .declared_packed = 1'000'000'000U};
  EXPECT_EQ(opening(entry), "data.npy: has 1000000000 bytes in the archive's list, but the whole archive has " +
                                std::to_string(zip_file({entry}).size()) + "; fetch it again");
}

TEST_F(NpzTest, DataLongerThanDeclaredAreFoundBehindTheLastRow) {
  // The header and the declared size agree on two rows; the stream would go on for a million bytes.
  const std::string content = npy_of(2, 3, "abcdef");
  const std::string text = reading({.content = content + std::string(1'000'000, 'x'),
                                    .deflate = true,
                                    .declared_size = static_cast<std::uint32_t>(content.size())});
  EXPECT_EQ(text, "data.npy: has more than the " + std::to_string(content.size()) +
                      " bytes that were declared; the archive is damaged or a trap, fetch it again");
}

TEST_F(NpzTest, DataShorterThanDeclaredAreFound) {
  const std::string content = npy_of(2, 3, "abcd");
  const std::string text =
      reading({.content = content, .deflate = true, .declared_size = static_cast<std::uint32_t>(content.size() + 2)});
  EXPECT_EQ(text, "data.npy: ends after " + std::to_string(content.size()) + " bytes in the middle of the array (" +
                      std::to_string(content.size() + 2) + " were declared); fetch it again");
}

TEST_F(NpzTest, WrongChecksumIsFoundBehindTheLastRow) {
  const std::string content = npy_of(2, 3, "abcdef");
  const std::string size = std::to_string(content.size());
  for (const bool deflate : {false, true}) {
    EXPECT_EQ(reading({.content = content, .deflate = deflate, .declared_checksum = 1}),
              "data.npy: is damaged near byte " + size + " of " + size + ": CRC error; fetch it again");
  }
}

TEST_F(NpzTest, EncryptedAndOtherMethodsAreRefused) {
  EXPECT_EQ(opening({.content = npy_of(1, 3, "abc"), .flags = 1}),
            "data.npy: is encrypted; save it again with numpy.savez");
  EXPECT_EQ(opening({.content = npy_of(1, 3, "abc"), .declared_method = 14}),
            "data.npy: is packed with method 14, but 0 (stored) or 8 (deflated) was expected; save it again with "
            "numpy.savez");
}

TEST_F(NpzTest, ContentThatIsNoArrayIsRefused) {
  EXPECT_EQ(opening({.content = "0123456789"}),
            "data.npy: does not begin as a NumPy array does; save it again with numpy.savez");
  EXPECT_EQ(opening({.content = "\x93NUM"}),
            "data.npy: ends after 4 bytes in the middle of the array (4 were declared); fetch it again");
  EXPECT_EQ(opening({.content = npy_file("{}", "", 4)}),
            "data.npy: is a NumPy array of version 4, but 1, 2 or 3 was expected; save it again with numpy.savez");
  EXPECT_EQ(opening({.content = std::string("\x93NUMPY\x02\0\xff\xff\xff\xff{}", 14)}),
            "data.npy: its NumPy header has 4294967295 bytes, but at most 10000 were expected; save it again with "
            "numpy.savez");
}

}  // namespace
}  // namespace routing::npz_test
