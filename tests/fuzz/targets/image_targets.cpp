// Images: NumPy archives, PNG, CIFAR-10.
#include "data/images/image_files.h"
#include "data/images/zip_files.h"
#include "fuzz/scratch_files.h"
#include "fuzz/targets.h"
#include "routing/data/images/cifar10.h"
#include "routing/data/images/npy_header.h"
#include "routing/data/images/npz.h"
#include "routing/data/images/png_image.h"

namespace routing::fuzz {
namespace {

// A file as it is, or an array that is put into an archive with a right checksum.
void run_npz(Bytes bytes) {
  InputCutter input(bytes);
  const std::uint8_t mode = input.byte();
  const std::int64_t columns = 1 + input.byte() % 8;
  const std::string content = input.rest();
  takes([&] { parse_npy_header(content, "x.npz: data.npy"); });
  const auto path =
      scratch_file("x.npz", mode % 3 == 0 ? content : zip_file({{.content = content, .deflate = mode % 3 == 1}}));
  takes([&] {
    NpzRows rows(path, "data", columns);
    hold(rows.rows() >= 1, "an array without rows");
    std::vector<std::uint8_t> row(static_cast<std::size_t>(columns));
    std::int64_t count = 0;
    while (rows.next(row)) ++count;
    hold(count == rows.rows(), "another number of rows than promised");
  });
}

// The chunks of a PNG file with the checksums that they should have.
std::string with_good_checksums(std::string file) {
  constexpr std::size_t kFrame = 12;
  for (std::size_t place = 8; place + kFrame <= file.size();) {
    std::uint32_t length = 0;
    for (std::size_t byte = 0; byte < 4; ++byte) length = length << 8U | static_cast<unsigned char>(file[place + byte]);
    if (length > file.size() - place - kFrame) break;
    const std::string sum = big_endian(crc_of(file.substr(place + 4, length + 4)));
    file.replace(place + 8 + length, 4, sum);
    place += length + kFrame;
  }
  return file;
}

void run_png(Bytes bytes) {
  InputCutter input(bytes);
  const bool as_it_is = input.byte() % 4 == 0;
  const std::string content = input.rest();
  const std::string file = as_it_is ? content : with_good_checksums(content);
  takes([&] {
    const Image image = decode_png(raw(file), "x.png");
    hold(image.values.size() == static_cast<std::size_t>(image.shape.values()), "another number of values than pixels");
    const std::vector<std::uint8_t> written = encode_png(image, "y.png");
    hold(decode_png(raw(Bytes(written)), "y.png") == image, "written and read it is another image");
  });
}

void run_cifar10(Bytes bytes) {
  const auto path = scratch_file("data_batch_1.bin", text_of(bytes));
  takes([&] {
    const auto source = open_cifar10(path);
    std::int64_t count = 0;
    source->read("train", [&](std::span<const std::uint8_t> values) {
      hold(values.size() == 3072, "an image of another size");
      ++count;
    });
    hold(count == source->images("train") && static_cast<std::size_t>(count) * 3073 == bytes.size(),
         "another number of images than promised");
  });
}

std::vector<std::string> npz_seeds() {
  const std::string two_rows = npy_of(2, 3, "abcdef");
  const auto with = [](char mode, const std::string& content) { return content + '\2' + mode; };
  return {with(0, zip_file({{.content = two_rows}})),
          with(0, zip_file({{.content = two_rows, .deflate = true}, {.name = "labels.npy", .content = "x"}})),
          with(1, two_rows),
          with(2, two_rows),
          with(2, npy_file("{'shape': (2,), 'descr': '<f8', 'fortran_order': True}", "")),
          with(2, npy_of(1'000'000'007, 3, "abc"))};
}

std::vector<std::string> png_seeds() {
  std::vector<std::string> files{
      plain_png(2, 3, 'x'),
      png_file({.height = 2, .width = 9, .bits = 1, .colours = 0}, literal("\0ab\0cd")),
      png_file({.height = 1,
                .width = 2,
                .colours = 3,
                .before_pixels = png_chunk("PLTE", "abcdef") + png_chunk("tRNS", "\xff")},
               literal("\0\0\1")),
      png_file({.height = 1, .width = 1, .colours = 6}, literal("\0abc\xff")),
      png_file({.height = 8, .width = 8, .bits = 8, .colours = 2, .interlaced = 1}, std::string(220, '\0')),
      png_file({.height = 2, .width = 2, .bits = 16, .colours = 4}, std::string(18, '\0'))};
  for (std::string& file : files) file += '\1';
  return files;
}

std::vector<std::string> cifar10_seeds() {
  std::string record(3073, 'r');
  record[0] = 3;
  return {record, record + record, record.substr(1)};
}

}  // namespace

FuzzTarget npz_target() {
  return {"npz", run_npz, npz_seeds};
}
FuzzTarget png_target() {
  return {"png", run_png, png_seeds};
}
FuzzTarget cifar10_target() {
  return {"cifar10", run_cifar10, cifar10_seeds};
}

}  // namespace routing::fuzz
