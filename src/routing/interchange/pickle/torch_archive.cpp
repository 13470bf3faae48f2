#include "routing/interchange/pickle/torch_archive.h"

#include "routing/core/error.h"
#include "routing/core/files.h"
#include "routing/interchange/pickle/restricted_pickle.h"

#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <zip.h>

namespace routing {
namespace {

// A state_dict of a thousand tensors has 100 kB.
constexpr std::uint64_t kLargestPickle = std::uint64_t{64} << 20U;
// Names that share a storage, such as tied layers, each get a copy; so many times the size of the file is enough.
constexpr std::uint64_t kMostCopies = 64;
constexpr std::string_view kLegacyStart = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";

struct CloseArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct CloseFile {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};

class Archive {
 public:
  explicit Archive(const std::filesystem::path& path) : where_(path.string()) {
    const MappedFile file(path);
    size_ = file.size();
    refuse_other_formats(file.bytes());
    int code = 0;
    archive_.reset(zip_open(path.c_str(), ZIP_RDONLY, &code));
    require<FileError>(archive_ != nullptr, where_, ": is not a zip archive, as files of torch.save are since torch ",
                       "1.6, or its end is cut off (libzip's error ", code, "); fetch it again");
    list_members();
  }

  const std::string& where() const { return where_; }
  std::uint64_t size() const { return size_; }
  bool has(const std::string& name) const { return members_.count(root_ + name) == 1; }

  std::uint64_t size_of(const std::string& name) const { return stat(name).size; }

  std::vector<std::byte> read(const std::string& name) const {
    const zip_stat_t facts = stat(name);
    const std::string where = where_ + ": " + root_ + name;
    const std::unique_ptr<zip_file_t, CloseFile> file(zip_fopen_index(archive_.get(), facts.index, 0));
    require<FileError>(file != nullptr, where, ": cannot be read: ", zip_strerror(archive_.get()), "; fetch it again");
    std::vector<std::byte> bytes(facts.size);
    std::uint64_t done = 0;
    std::byte beyond{};
    while (done < bytes.size()) {
      const zip_int64_t got = zip_fread(file.get(), bytes.data() + done, bytes.size() - done);
      require<FileError>(got > 0, where, ": ends or breaks after ", done, " of ", bytes.size(), " bytes (",
                         zip_file_strerror(file.get()), "); fetch it again");
      done += static_cast<std::uint64_t>(got);
    }
    // libzip compares the checksum when it meets the end.
    const zip_int64_t more = zip_fread(file.get(), &beyond, 1);
    require<FileError>(more == 0, where, ": ", zip_file_strerror(file.get()), "; the file is damaged, fetch it again");
    return bytes;
  }

 private:
  void refuse_other_formats(std::span<const std::byte> bytes) const {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    require<FileError>(!text.starts_with(kLegacyStart), where_,
                       ": has the format that torch.save wrote before torch 1.6 (or with "
                       "_use_new_zipfile_serialization=False), which can only be read by running it; if you trust it, "
                       "load it with torch and save its state_dict again");
    require<FileError>(text.starts_with("PK"), where_,
                       ": does not begin as a zip archive does; give a file of torch.save(model.state_dict(), path)");
  }

  void list_members() {
    const zip_int64_t count = zip_get_num_entries(archive_.get(), 0);
    for (zip_int64_t index = 0; index < count; ++index) {
      const char* const name = zip_get_name(archive_.get(), static_cast<zip_uint64_t>(index), 0);
      require<FileError>(name != nullptr, where_, ": entry ", index, " has no name; fetch it again");
      require<FileError>(members_.emplace(name, static_cast<zip_uint64_t>(index)).second, where_, ": has two entries '",
                         name, "'; the archive is damaged or a trap");
    }
    constexpr std::string_view kPickle = "/data.pkl";
    for (const auto& [name, index] : members_) {
      if (!name.ends_with(kPickle) || name.find('/') + kPickle.size() != name.size()) continue;
      require<FileError>(root_.empty(), where_, ": has two pickles, ", root_, "data.pkl and ", name);
      root_ = name.substr(0, name.size() - kPickle.size() + 1);
    }
    require<FileError>(!root_.empty(), where_,
                       ": has no data.pkl in it; give a file of torch.save(model.state_dict(), path)");
    require<FileError>(!has("constants.pkl"), where_,
                       ": is a TorchScript archive, which holds code; save the state_dict of the model instead");
  }

  zip_stat_t stat(const std::string& name) const {
    const std::string where = where_ + ": " + root_ + name;
    const auto member = members_.find(root_ + name);
    require<FileError>(member != members_.end(), where, ": is not in the archive; fetch it again");
    zip_stat_t facts;
    zip_stat_init(&facts);
    constexpr zip_uint64_t kNeeded =
        ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD | ZIP_STAT_INDEX;
    require<FileError>(
        zip_stat_index(archive_.get(), member->second, 0, &facts) == 0 && (facts.valid & kNeeded) == kNeeded, where,
        ": the archive does not say its size; fetch it again");
    require<FileError>(facts.comp_method == ZIP_CM_STORE && facts.encryption_method == ZIP_EM_NONE, where,
                       ": is compressed or encrypted (method ", facts.comp_method,
                       "), which torch.save never does; save it again with torch.save");
    require<FileError>(facts.size == facts.comp_size && facts.size <= size_, where, ": declares ", facts.size,
                       " bytes, but has ", facts.comp_size, " in an archive of ", size_,
                       "; the archive is damaged or a trap, fetch it again");
    return facts;
  }

  std::string where_;
  std::uint64_t size_ = 0;
  std::unique_ptr<zip_t, CloseArchive> archive_;
  std::map<std::string, zip_uint64_t> members_;
  std::string root_;  // with its slash
};

// Of a tensor with numbers: the sides of an empty one may have no product that can be counted.
bool is_without_gaps(const PickledTensor& tensor) {
  std::int64_t expected = 1;
  for (std::size_t axis = tensor.dimensions.size(); axis > 0; --axis) {
    if (tensor.dimensions[axis - 1] != 1 && tensor.strides[axis - 1] != expected) return false;
    expected *= tensor.dimensions[axis - 1];
  }
  return true;
}

// Copies a view row by row.
std::vector<std::byte> gathered(const PickledTensor& tensor, const std::vector<std::byte>& storage) {
  const std::uint64_t count = *count_of(tensor.dimensions);
  const std::uint64_t width = bytes_of(tensor.type);
  std::vector<std::byte> bytes(count * width);
  if (count == 0) return bytes;
  if (is_without_gaps(tensor)) {
    std::memcpy(bytes.data(), storage.data() + tensor.offset * width, bytes.size());
    return bytes;
  }
  std::vector<std::uint64_t> place(tensor.dimensions.size(), 0);
  std::uint64_t from = tensor.offset;
  for (std::uint64_t index = 0; index < count; ++index) {
    std::memcpy(bytes.data() + index * width, storage.data() + from * width, width);
    for (std::size_t axis = place.size(); axis > 0; --axis) {
      const auto stride = static_cast<std::uint64_t>(tensor.strides[axis - 1]);
      from += stride;
      if (++place[axis - 1] < static_cast<std::uint64_t>(tensor.dimensions[axis - 1])) break;
      from -= stride * place[axis - 1];
      place[axis - 1] = 0;
    }
  }
  return bytes;
}

std::string storage_name(const PickledTensor& tensor) {
  return "data/" + tensor.storage;
}

}  // namespace

std::vector<TorchTensor> read_torch_archive(const std::filesystem::path& path, const std::string& entry) {
  const Archive archive(path);
  require<FileError>(archive.size_of("data.pkl") <= kLargestPickle, archive.where(), ": its pickle has ",
                     archive.size_of("data.pkl"), " bytes, but at most ", kLargestPickle,
                     " were expected; save a state_dict alone");
  if (archive.has("byteorder")) {
    require<FileError>(archive.size_of("byteorder") <= 16, archive.where(), ": its byteorder is no word");
    const std::vector<std::byte> order = archive.read("byteorder");
    const std::string word(reinterpret_cast<const char*>(order.data()), order.size());
    require<FileError>(word == "little", archive.where(), ": its byte order is '", word,
                       "', but 'little' was expected; save it again on another machine");
  }
  const std::vector<PickledTensor> pickled = read_pickled_tensors(archive.read("data.pkl"), archive.where(), entry);
  std::vector<TorchTensor> tensors;
  std::uint64_t total = 0;
  std::map<std::string, std::vector<std::size_t>> views;  // of each storage
  for (const PickledTensor& tensor : pickled) {
    total += *count_of(tensor.dimensions) * bytes_of(tensor.type);
    require<FileError>(total <= kMostCopies * archive.size(), archive.where(), ": its tensors have more than ",
                       kMostCopies, " times the ", archive.size(), " bytes of the file; the file is a trap");
    const std::uint64_t bytes = archive.size_of(storage_name(tensor));
    require<FileError>(bytes / bytes_of(tensor.type) == tensor.storage_count && bytes % bytes_of(tensor.type) == 0,
                       archive.where(), ": tensor '", tensor.name, "': storage ", tensor.storage, " has ", bytes,
                       " bytes, but ", tensor.storage_count, " numbers of ", name_of(tensor.type),
                       " were expected; the file is damaged");
    views[storage_name(tensor)].push_back(tensors.size());
    tensors.push_back({.name = tensor.name, .type = tensor.type, .dimensions = tensor.dimensions, .bytes = {}});
  }
  // Each storage is read once: thousands of small views of one large storage would take hours otherwise.
  for (const auto& [storage, indices] : views) {
    const std::vector<std::byte> numbers = archive.read(storage);
    for (const std::size_t index : indices) tensors[index].bytes = gathered(pickled[index], numbers);
  }
  return tensors;
}

}  // namespace routing
