#include "routing/data/images/cifar10.h"

#include "routing/core/error.h"
#include "routing/core/files.h"
#include "routing/data/images/image.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

namespace routing {
namespace {

constexpr ImageShape kShape{.height = 32, .width = 32};
constexpr std::size_t kRecordBytes = 1 + 3 * 32 * 32;
constexpr std::int64_t kBatchRecords = 10'000;
constexpr unsigned kLabels = 10;
constexpr const char* kInnerFolder = "cifar-10-batches-bin";
constexpr std::array kTrainFiles = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                                    "data_batch_5.bin"};
constexpr const char* kTestFile = "test_batch.bin";

std::int64_t whole_records(const MappedFile& file, const std::filesystem::path& path) {
  const std::size_t records = file.size() / kRecordBytes;
  require<FileError>(records > 0 && file.size() % kRecordBytes == 0, path.string(), ": has ", file.size(),
                     " bytes, but 10000 records of 3073 bytes = 30730000 bytes were expected; it is whole for ",
                     records, " records, ", file.size() % kRecordBytes,
                     " bytes follow; fetch it again, or cut it after a whole record");
  return static_cast<std::int64_t>(records);
}

class Cifar10 : public ImageSource {
 public:
  Cifar10(std::vector<std::filesystem::path> train, std::vector<std::filesystem::path> test) {
    facts_.format = "cifar10";
    std::vector<std::string> missing;
    if (train.size() < kTrainFiles.size()) missing.push_back(std::to_string(train.size()) + " of 5 train batches");
    if (test.empty()) missing.push_back(std::string("no ") + kTestFile);
    for (const auto* const files : {&train, &test}) {
      for (const auto& file : *files) missing.push_back(count_records(file));
    }
    facts_.missing = joined(missing);
    if (!train.empty()) facts_.parts.push_back({.name = "train", .files = std::move(train)});
    if (!test.empty()) facts_.parts.push_back({.name = "test", .files = std::move(test)});
  }

  const SourceFacts& facts() const override { return facts_; }
  ImageShape shape() const override { return kShape; }

  std::int64_t images(std::string_view part) const override {
    std::int64_t sum = 0;
    for (const auto& file : require_part(facts_, part).files) sum += records_.at(file);
    return sum;
  }

  void read(std::string_view part, const ImageSink& sink) const override {
    for (const auto& file : require_part(facts_, part).files) read_file(file, sink);
  }

 private:
  // Returns what is missing.
  std::string count_records(const std::filesystem::path& path) {
    const std::int64_t records = whole_records(MappedFile(path), path);
    records_[path] = records;
    if (records >= kBatchRecords) return "";
    return std::to_string(records) + " of 10000 records in " + path.filename().string();
  }

  void read_file(const std::filesystem::path& path, const ImageSink& sink) const {
    const MappedFile file(path);
    const std::int64_t records = whole_records(file, path);
    require<FileError>(records == records_.at(path), path.string(), ": has ", records, " records, but had ",
                       records_.at(path), " when it was opened; leave it alone and start again");
    const std::span bytes(reinterpret_cast<const std::uint8_t*>(file.bytes().data()), file.size());
    std::vector<std::uint8_t> raster(kRecordBytes - 1);
    for (std::size_t begin = 0; begin < bytes.size(); begin += kRecordBytes) {
      const unsigned label = bytes[begin];
      require<FileError>(label < kLabels, path.string(), ": record ", begin / kRecordBytes,
                         " (counted from 0) has label ", label,
                         ", but 0 to 9 were expected; this is not CIFAR-10's binary version, or it is damaged; "
                         "fetch cifar-10-binary.tar.gz again");
      raster_from_planar(bytes.subspan(begin + 1, kRecordBytes - 1), raster);
      sink(raster);
    }
  }

  SourceFacts facts_;
  std::map<std::filesystem::path, std::int64_t> records_;
};

std::unique_ptr<ImageSource> open_file(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  if (name == kTestFile) return std::make_unique<Cifar10>(std::vector<std::filesystem::path>{}, std::vector{path});
  require<FileError>(
      std::find(kTrainFiles.begin(), kTrainFiles.end(), name) != kTrainFiles.end(), path.string(), ": is called ", name,
      ", but data_batch_1.bin to data_batch_5.bin or test_batch.bin were expected; rename it if it is one "
      "of these, or name their folder");
  return std::make_unique<Cifar10>(std::vector{path}, std::vector<std::filesystem::path>{});
}

bool has_batches(const std::filesystem::path& folder) {
  const auto there = [&](const char* name) { return is_there(folder / name); };
  return there(kTestFile) || std::any_of(kTrainFiles.begin(), kTrainFiles.end(), there);
}

}  // namespace

std::unique_ptr<ImageSource> open_cifar10(const std::filesystem::path& path) {
  require<FileError>(is_there(path), path.string(),
                     ": is not there or may not be read; name the folder with data_batch_1.bin, or one of its files");
  if (!is_folder(path)) return open_file(path);
  const std::filesystem::path folder = has_batches(path) ? path : path / kInnerFolder;
  require<FileError>(has_batches(folder), path.string(),
                     ": has none of data_batch_1.bin to data_batch_5.bin and test_batch.bin, nor has a folder ",
                     kInnerFolder,
                     " in it; unpack cifar-10-binary.tar.gz there (the Python and Matlab versions are not read)");
  std::vector<std::filesystem::path> train;
  for (const char* const name : kTrainFiles) {
    if (is_there(folder / name)) train.push_back(folder / name);
  }
  std::vector<std::filesystem::path> test;
  if (is_there(folder / kTestFile)) test.push_back(folder / kTestFile);
  return std::make_unique<Cifar10>(std::move(train), std::move(test));
}

}  // namespace routing
