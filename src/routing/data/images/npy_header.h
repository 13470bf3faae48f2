// What stands in front of the numbers of a NumPy file (.npy): a line such as
//
//   {'descr': '|u1', 'fortran_order': False, 'shape': (600, 12288), }
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace routing {

struct NpyHeader {
  std::string descr;  // the type of a number: '|u1' is an unsigned byte
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

// Reads that line as data: exactly these three keys in any order, one string, one of True and False, and whole numbers
// in brackets. Behind the closing brace only white space may follow. Types with fields (a list as descr) are refused.
//
// Throws  FileError  "<where>: …", with what was expected and where in the line
NpyHeader parse_npy_header(std::string_view line, const std::string& where);

// "(600, 12288)", as NumPy writes it.
std::string shape_text(const std::vector<std::int64_t>& shape);

}  // namespace routing
