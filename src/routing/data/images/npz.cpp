#include "routing/data/images/npz.h"

#include "routing/core/error.h"
#include "routing/core/files.h"
#include "routing/data/images/npy_header.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <zip.h>

namespace routing {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
// NumPy's own headers have 118 bytes; its reader takes up to 10,000 unless told to trust the file.
constexpr std::uint64_t kLongestHeader = 10'000;
// Deflate makes at most 1032 bytes of one.
constexpr std::uint64_t kLargestRatio = 1032;

struct CloseArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct CloseFile {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};
using Archive = std::unique_ptr<zip_t, CloseArchive>;
using File = std::unique_ptr<zip_file_t, CloseFile>;

Archive open_archive(const std::filesystem::path& path) {
  int code = 0;
  Archive archive(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (archive != nullptr) return archive;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string reason = zip_error_strerror(&error);
  zip_error_fini(&error);
  constexpr int kTruncated = 35;  // ZIP_ER_TRUNCATED_ZIP, which libzip has since 1.11
  require<FileError>(code != ZIP_ER_NOZIP && code != kTruncated, path.string(),
                     ": is not a zip archive, as NumPy's .npz files are, or its end is cut off; fetch it again");
  throw FileError(path.string() + ": cannot be opened as a zip archive: " + reason + "; fetch it again");
}

}  // namespace

class NpzRows::Member {
 public:
  Member(const std::filesystem::path& path, const std::string& array, std::int64_t columns)
      : path_(path), name_(array + ".npy"), where_(path.string() + ": " + name_), columns_(columns) {
    require<InputError>(columns > 0, where_, ": ", columns, " columns were asked for; give at least 1");
    const std::uint64_t size = MappedFile(path).size();  // for its messages
    require<FileError>(size > 0, path.string(), ": has 0 bytes, but a NumPy archive was expected; fetch it again");
    archive_ = open_archive(path);
    require_plausible_sizes(size);
    file_.reset(zip_fopen(archive_.get(), name_.c_str(), 0));
    require<FileError>(file_ != nullptr, where_, ": cannot be read: ", zip_strerror(archive_.get()),
                       "; fetch it again");
    read_header();
  }

  std::int64_t rows() const { return rows_; }

  bool next(std::span<std::uint8_t> row) {
    require<InputError>(static_cast<std::int64_t>(row.size()) == columns_, where_, ": a row has ", columns_,
                        " values, but space for ", row.size(), " was given");
    if (row_ == rows_) {
      if (!checked_end_) require_end();
      checked_end_ = true;
      return false;
    }
    read(row);
    ++row_;
    return true;
  }

 private:
  void require_plausible_sizes(std::uint64_t archive_size) {
    zip_stat_t facts;
    zip_stat_init(&facts);
    require<FileError>(zip_stat(archive_.get(), name_.c_str(), 0, &facts) == 0, path_.string(), ": has no array ",
                       name_, " in it; save the images as data with numpy.savez");
    constexpr zip_uint64_t kNeeded =
        ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
    require<FileError>((facts.valid & kNeeded) == kNeeded, where_,
                       ": the archive does not say its size; fetch it again");
    require<FileError>(facts.encryption_method == ZIP_EM_NONE, where_,
                       ": is encrypted; save it again with numpy.savez");
    const bool stored = facts.comp_method == ZIP_CM_STORE;
    require<FileError>(stored || facts.comp_method == ZIP_CM_DEFLATE, where_, ": is packed with method ",
                       facts.comp_method,
                       ", but 0 (stored) or 8 (deflated) was expected; save it again with numpy.savez");
    require<FileError>(facts.comp_size <= archive_size, where_, ": has ", facts.comp_size,
                       " bytes in the archive's list, but the whole archive has ", archive_size, "; fetch it again");
    const std::uint64_t most = stored ? facts.comp_size : kLargestRatio * facts.comp_size;
    require<FileError>(facts.size <= most, where_, ": declares ", facts.size, " bytes, but the ", facts.comp_size,
                       " it has in the archive make at most ", most,
                       "; the archive is damaged or a trap, fetch it again");
    declared_ = facts.size;
  }

  void read_header() {
    std::array<std::uint8_t, 12> start{};
    read(std::span(start).first(10));
    require<FileError>(std::memcmp(start.data(), kMagic.data(), kMagic.size()) == 0, where_,
                       ": does not begin as a NumPy array does; save it again with numpy.savez");
    const int version = start[6];
    require<FileError>(version >= 1 && version <= 3, where_, ": is a NumPy array of version ", version,
                       ", but 1, 2 or 3 was expected; save it again with numpy.savez");
    std::uint64_t length = start[8] + 256U * start[9];
    if (version > 1) {
      read(std::span(start).last(2));
      length += (std::uint64_t{start[10]} << 16U) + (std::uint64_t{start[11]} << 24U);
    }
    require<FileError>(length <= kLongestHeader, where_, ": its NumPy header has ", length, " bytes, but at most ",
                       kLongestHeader, " were expected; save it again with numpy.savez");
    std::string line(length, '\0');
    read({reinterpret_cast<std::uint8_t*>(line.data()), line.size()});
    require_matrix(parse_npy_header(line, where_));
    require_declared(consumed_);
  }

  void require_matrix(const NpyHeader& header) {
    require<FileError>(header.descr == "|u1", where_, ": dtype is '", header.descr,
                       "', but '|u1' (uint8) was expected; save it again as uint8 with numpy.savez");
    require<FileError>(!header.fortran_order, where_,
                       ": is in Fortran order, but C order was expected; save numpy.ascontiguousarray of it");
    require<FileError>(header.shape.size() == 2 && header.shape[1] == columns_ && header.shape[0] > 0, where_,
                       ": shape is ", shape_text(header.shape), ", but N x ", columns_,
                       " uint8 was expected; check that these are images of this size, one per row");
    rows_ = header.shape[0];
  }

  // Divides, as a made-up number of rows could make a product overflow.
  void require_declared(std::uint64_t header_size) const {
    const std::uint64_t rest = declared_ - std::min(header_size, declared_);
    const auto columns = static_cast<std::uint64_t>(columns_);
    require<FileError>(rest % columns == 0 && rest / columns == static_cast<std::uint64_t>(rows_), where_,
                       ": shape is (", rows_, ", ", columns_, "), but the archive declares ", rest,
                       " bytes of data, which are ", rest / columns, " rows and ", rest % columns,
                       " bytes; the archive is damaged or a trap, fetch it again");
  }

  void read(std::span<std::uint8_t> target) {
    while (!target.empty()) {
      const zip_int64_t count = zip_fread(file_.get(), target.data(), target.size());
      if (count < 0) throw_damaged();
      require<FileError>(count > 0, where_, ": ends after ", consumed_, " bytes in the middle of the array (",
                         declared_, " were declared); fetch it again");
      consumed_ += static_cast<std::uint64_t>(count);
      target = target.subspan(static_cast<std::size_t>(count));
    }
  }

  void require_end() {
    std::uint8_t more = 0;
    const zip_int64_t count = zip_fread(file_.get(), &more, 1);
    if (count < 0) throw_damaged();
    require<FileError>(count == 0, where_, ": has more than the ", declared_,
                       " bytes that were declared; the archive is damaged or a trap, fetch it again");
  }

  [[noreturn]] void throw_damaged() {
    throw FileError(where_ + ": is damaged near byte " + std::to_string(consumed_) + " of " +
                    std::to_string(declared_) + ": " + zip_file_strerror(file_.get()) + "; fetch it again");
  }

  std::filesystem::path path_;
  std::string name_;
  std::string where_;
  std::int64_t columns_;
  std::int64_t rows_ = 0;
  std::int64_t row_ = 0;
  bool checked_end_ = false;
  std::uint64_t declared_ = 0;  // bytes of the .npy file, as the archive's list says
  std::uint64_t consumed_ = 0;
  Archive archive_;
  File file_;  // goes first, so behind the archive
};

NpzRows::NpzRows(const std::filesystem::path& archive, const std::string& array, std::int64_t columns)
    : member_(std::make_unique<Member>(archive, array, columns)) {}
NpzRows::~NpzRows() = default;
NpzRows::NpzRows(NpzRows&&) noexcept = default;
NpzRows& NpzRows::operator=(NpzRows&&) noexcept = default;

std::int64_t NpzRows::rows() const {
  return member_->rows();
}

bool NpzRows::next(std::span<std::uint8_t> row) {
  return member_->next(row);
}

}  // namespace routing
