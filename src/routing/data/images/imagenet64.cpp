#include "routing/data/images/imagenet64.h"

#include "routing/core/error.h"
#include "routing/data/images/image.h"
#include "routing/data/images/npz.h"
#include "routing/data/images/png_folders.h"

#include <map>
#include <string>
#include <utility>

namespace routing {
namespace {

constexpr ImageShape kShape{.height = 64, .width = 64};
constexpr int kTrainBatches = 10;
constexpr const char* kValidBatch = "val_data.npz";

struct Counts {
  std::int64_t train = 0;
  std::int64_t valid = 0;
};
constexpr Counts kWholeOord{.train = 1'281'149, .valid = 49'999};
constexpr Counts kWholeChrabaszcz{.train = 1'281'167, .valid = 50'000};

std::string lack(const std::string& absent, std::int64_t found, std::int64_t whole, const char* kind) {
  if (found == 0) return "no " + absent;
  if (found >= whole) return "";
  return std::to_string(found) + " of " + std::to_string(whole) + " " + kind + " images";
}

std::unique_ptr<ImageSource> open_pngs(const std::filesystem::path& train, const std::filesystem::path& valid) {
  const bool has_train = is_folder(train);
  const bool has_valid = is_folder(valid);
  std::vector<PngFolders::Part> parts;
  if (has_train) parts.push_back({.name = "train", .folder = train});
  if (has_valid) parts.push_back({.name = has_train ? "test" : "train", .folder = valid});
  auto source = std::make_unique<PngFolders>("imagenet64", parts);
  require<FileError>(source->shape() == kShape, source->first_image().string(), ": is ", to_string(source->shape()),
                     " pixels, but images of ImageNet-64 are ", to_string(kShape),
                     "; set data.format to images for folders of other sizes");
  source->set_missing(joined(
      {lack(train.filename().string(), has_train ? source->images("train") : 0, kWholeOord.train, "train"),
       lack(valid.filename().string(), has_valid ? source->images(parts.back().name) : 0, kWholeOord.valid, "valid")}));
  return source;
}

class NpzImages : public ImageSource {
 public:
  using Files = std::vector<std::filesystem::path>;

  NpzImages(Files train, Files valid) {
    facts_.format = "imagenet64";
    const Counts found{.train = count_rows(train), .valid = count_rows(valid)};
    facts_.missing = joined({lack("train_data_batch_*.npz", found.train, kWholeChrabaszcz.train, "train"),
                             lack(kValidBatch, found.valid, kWholeChrabaszcz.valid, "valid")});
    if (!train.empty()) facts_.parts.push_back({.name = "train", .files = std::move(train)});
    if (!valid.empty())
      facts_.parts.push_back({.name = facts_.parts.empty() ? "train" : "test", .files = std::move(valid)});
  }

  const SourceFacts& facts() const override { return facts_; }
  ImageShape shape() const override { return kShape; }

  std::int64_t images(std::string_view part) const override {
    std::int64_t sum = 0;
    for (const auto& file : require_part(facts_, part).files) sum += rows_.at(file);
    return sum;
  }

  void read(std::string_view part, const ImageSink& sink) const override {
    std::vector<std::uint8_t> planar(static_cast<std::size_t>(kShape.values()));
    std::vector<std::uint8_t> raster(planar.size());
    for (const auto& file : require_part(facts_, part).files) {
      NpzRows rows = open(file);
      require<FileError>(rows.rows() == rows_.at(file), file.string(), ": has ", rows.rows(), " rows, but had ",
                         rows_.at(file), " when it was opened; leave it alone and start again");
      while (rows.next(planar)) {
        raster_from_planar(planar, raster);
        sink(raster);
      }
    }
  }

 private:
  static NpzRows open(const std::filesystem::path& file) { return {file, "data", kShape.values()}; }

  std::int64_t count_rows(const Files& files) {
    std::int64_t sum = 0;
    for (const auto& file : files) sum += rows_[file] = open(file).rows();
    return sum;
  }

  SourceFacts facts_;
  std::map<std::filesystem::path, std::int64_t> rows_;
};

std::unique_ptr<ImageSource> open_npzs(const std::filesystem::path& folder) {
  NpzImages::Files train;
  for (int batch = 1; batch <= kTrainBatches; ++batch) {
    const auto file = folder / ("train_data_batch_" + std::to_string(batch) + ".npz");
    if (is_there(file)) train.push_back(file);
  }
  NpzImages::Files valid;
  if (is_there(folder / kValidBatch)) valid.push_back(folder / kValidBatch);
  require<FileError>(!train.empty() || !valid.empty(), folder.string(),
                     ": has neither train_64x64 or valid_64x64 with PNG files nor train_data_batch_1.npz to "
                     "train_data_batch_10.npz or val_data.npz; unpack ImageNet 64x64 there (pickled batches without "
                     ".npz are not read), or set data.format to images for other folders");
  return std::make_unique<NpzImages>(std::move(train), std::move(valid));
}

}  // namespace

std::unique_ptr<ImageSource> open_imagenet64(const std::filesystem::path& path) {
  require<FileError>(
      is_there(path), path.string(),
      ": is not there or may not be read; name the folder with train_64x64 and valid_64x64, or with the files *.npz");
  if (!is_folder(path)) {
    require<FileError>(path.extension() == ".npz", path.string(),
                       ": is not a folder and does not end in .npz; name a folder, or one of the files *.npz");
    const bool is_valid = path.filename() == kValidBatch;
    return std::make_unique<NpzImages>(is_valid ? NpzImages::Files{} : NpzImages::Files{path},
                                       is_valid ? NpzImages::Files{path} : NpzImages::Files{});
  }
  const auto train = path / "train_64x64";
  const auto valid = path / "valid_64x64";
  if (is_folder(train) || is_folder(valid)) return open_pngs(train, valid);
  return open_npzs(path);
}

}  // namespace routing
