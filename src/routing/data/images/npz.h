// Matrices of bytes in NumPy archives (.npz: a zip archive of .npy files), row by row.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace routing {

// Goes through one array of an archive, which has N rows of a known number of unsigned bytes. Memory holds one row and
// libzip's buffers, whatever N is; the archive may be stored or deflated.
//
// Opening reads the list of files in the archive and the header of the array. What that says must fit together (the
// shape with the declared size, the declared size with the compressed one) before anything more is inflated, so an
// archive cannot make us inflate more than its header says, and no row is ever longer than asked for.
//
// Throws  FileError  as MappedFile; not a zip archive, no such array, another type or shape, Fortran order, encrypted
// or
//                    packed in another way, sizes that do not fit; while reading, data that are damaged, too short or
//                    too long. A wrong checksum shows only after the last row: forget the rows that came before.
class NpzRows {
 public:
  // The array "data" is the archive's file data.npy.
  NpzRows(const std::filesystem::path& archive, const std::string& array, std::int64_t columns);
  ~NpzRows();
  NpzRows(NpzRows&&) noexcept;
  NpzRows& operator=(NpzRows&&) noexcept;

  std::int64_t rows() const;  // at least 1

  // Fills the row, which has as many values as there are columns (else InputError). Returns false after the last row,
  // once the end of the data and their checksum were found right.
  bool next(std::span<std::uint8_t> row);

 private:
  class Member;
  std::unique_ptr<Member> member_;
};

}  // namespace routing
