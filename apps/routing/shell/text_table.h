// Tables for people: columns side by side, as wide as the terminal allows.
#pragma once

#include <string>
#include <vector>

namespace routing {

struct TableColumn {
  std::string title;
  bool right = false;    // numbers end below each other
  bool shrinks = false;  // may lose letters where the terminal is narrow
};

// The titles and a line per row, columns two spaces apart. A row may have fewer cells than there are columns: its last
// one may then run over the others.
//
// Where that is wider than `width` letters (0: nothing is), the columns that may shrink do, the widest first and down
// to 12 letters, with a … for what is gone; if that is not enough, columns go from the right.
std::string text_table(std::vector<TableColumn> columns, std::vector<std::vector<std::string>> rows, std::size_t width);

// Columns of the terminal behind a file; 0 if there is none.
std::size_t terminal_width(int file);
// Of standard output.
std::size_t output_width();

}  // namespace routing
