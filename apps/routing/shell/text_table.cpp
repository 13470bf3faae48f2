#include "shell/text_table.h"

#include <algorithm>
#include <numeric>
#include <sys/ioctl.h>
#include <unistd.h>

namespace routing {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kNarrowest = 12;

bool begins_letter(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
}

std::size_t letters(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_letter));
}

// Names of files may hold what a terminal would obey.
std::string harmless(std::string text) {
  for (char& letter : text) {
    if (static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f) letter = '?';
  }
  return text;
}

std::string cut_to(const std::string& text, std::size_t width) {
  if (letters(text) <= width) return text;
  std::size_t end = 0;
  for (std::size_t seen = 0; end < text.size(); ++end) {
    if (begins_letter(text[end]) && ++seen == width) break;
  }
  return text.substr(0, end) + "…";
}

std::size_t total(const std::vector<std::size_t>& widths) {
  return std::accumulate(widths.begin(), widths.end(), kGap * (widths.size() - 1));
}

void shrink(const std::vector<TableColumn>& columns, std::vector<std::size_t>& widths, std::size_t width) {
  while (total(widths) > width) {
    std::size_t widest = columns.size();
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (!columns[i].shrinks || widths[i] <= kNarrowest) continue;
      if (widest == columns.size() || widths[i] > widths[widest]) widest = i;
    }
    if (widest < columns.size()) {
      --widths[widest];
    } else if (widths.size() > 1) {
      widths.pop_back();
    } else {
      return;
    }
  }
}

}  // namespace

std::string text_table(std::vector<TableColumn> columns, std::vector<std::vector<std::string>> rows,
                       std::size_t width) {
  rows.insert(rows.begin(), std::vector<std::string>());
  for (const TableColumn& column : columns) rows.front().push_back(column.title);
  std::vector<std::size_t> widths(columns.size(), 0);
  for (auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = harmless(row[i]);
      const bool runs_over = row.size() < columns.size() && i + 1 == row.size();
      if (!runs_over) widths[i] = std::max(widths[i], letters(row[i]));
    }
  }
  if (width > 0) shrink(columns, widths, width);
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    std::size_t at = 0;  // letters of the line before this column
    for (std::size_t i = 0; i < std::min(row.size(), widths.size()); ++i) {
      const bool runs_over = row.size() < columns.size() && i + 1 == row.size();
      std::size_t room = widths[i];
      if (runs_over) room = width > at ? width - at : width > 0 ? 1 : letters(row[i]);
      const std::string cell = cut_to(row[i], std::max<std::size_t>(room, 1));
      const std::string space(widths[i] - std::min(widths[i], letters(cell)), ' ');
      line += columns[i].right && !runs_over ? space + cell : cell + space;
      line += std::string(kGap, ' ');
      at += widths[i] + kGap;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::size_t terminal_width(int file) {
  winsize size{};
  return ::ioctl(file, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

std::size_t output_width() {
  return terminal_width(STDOUT_FILENO);
}

}  // namespace routing
