// The bytes of a file without reading it: the system brings in the pages that are touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace routing {

// A file mapped for reading while the object lives. Whoever shortens the file meanwhile ends the program; files that
// are replaced by a rename are safe.
//
// Throws  FileError  the file is missing, empty, a folder, a pipe or a device, or may not be read
class MappedBytes {
 public:
  explicit MappedBytes(const std::filesystem::path& path);
  ~MappedBytes();
  MappedBytes(MappedBytes&& other) noexcept;
  MappedBytes& operator=(MappedBytes&& other) noexcept;
  MappedBytes(const MappedBytes&) = delete;
  MappedBytes& operator=(const MappedBytes&) = delete;

  std::span<const std::uint8_t> bytes() const { return {static_cast<const std::uint8_t*>(start_), size_}; }

 private:
  void* start_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace routing
