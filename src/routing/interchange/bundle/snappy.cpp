#include "routing/interchange/bundle/snappy.h"

#include "routing/core/error.h"
#include "routing/interchange/values/byte_cursor.h"

namespace routing {
namespace {

// TensorFlow's blocks have 256 KiB and one entry more.
constexpr std::uint64_t kLargest = std::uint64_t{64} << 20U;

class Unpacker {
 public:
  Unpacker(std::span<const std::byte> packed, const std::string& where) : cursor_(packed, where) {}

  std::string unpack() {
    length_ = cursor_.varint();
    require<FileError>(length_ <= kLargest, cursor_.where(), ": a packed block says that it makes ", length_,
                       " bytes, but at most ", kLargest, " were expected; the file is damaged or a trap");
    while (cursor_.left() > 0) add_piece(cursor_.byte());
    require<FileError>(text_.size() == length_, cursor_.where(), ": a packed block makes ", text_.size(),
                       " bytes, but ", length_, " were expected; the file is damaged, fetch it again");
    return std::move(text_);
  }

 private:
  void add_piece(std::uint8_t tag) {
    const std::uint64_t upper = tag >> 2U;
    switch (tag & 3U) {
      case 0: {
        // Lengths above 60 stand in the next one to four bytes.
        const std::uint64_t size = (upper < 60 ? upper : cursor_.fixed(upper - 59)) + 1;
        require_room(size);
        text_ += cursor_.text(size);
        return;
      }
      case 1:
        return copy((upper & 7U) + 4, (upper >> 3U) << 8U | cursor_.byte());
      case 2:
        return copy(upper + 1, cursor_.fixed(2));
      default:
        return copy(upper + 1, cursor_.fixed(4));
    }
  }

  // May overlap what it makes: offset 1 repeats the last byte.
  void copy(std::uint64_t size, std::uint64_t offset) {
    require_room(size);
    require<FileError>(offset >= 1 && offset <= text_.size(), cursor_.where(), ": a packed block repeats what stood ",
                       offset, " bytes before, but has made ", text_.size(), "; the file is damaged, fetch it again");
    for (std::uint64_t count = 0; count < size; ++count) text_ += text_[text_.size() - offset];
  }

  void require_room(std::uint64_t size) const {
    require<FileError>(size <= length_ - text_.size(), cursor_.where(), ": a packed block makes more than its ",
                       length_, " bytes; the file is damaged, fetch it again");
  }

  ByteCursor cursor_;
  std::uint64_t length_ = 0;
  std::string text_;
};

}  // namespace

std::string snappy_unpacked(std::span<const std::byte> packed, const std::string& where) {
  return Unpacker(packed, where).unpack();
}

}  // namespace routing
