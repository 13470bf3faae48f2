// Which font draws a letter? The usual one, else the first installed one that has it; a letter that none has is written
// as its number, so that a figure never shows an empty box.
#pragma once

#include <cairo.h>

#include <string>
#include <string_view>
#include <vector>

namespace routing {

inline constexpr const char* kUsualFont = "DejaVu Sans";

struct FontRun {
  std::string text = {};              // UTF-8
  cairo_font_face_t* face = nullptr;  // of the whole process; nullptr for the usual font
};

// The text cut where the font changes. A letter that no font has becomes "\u4e2d", a byte that is not UTF-8 "\xe9".
std::vector<FontRun> font_runs(std::string_view text, bool bold);

// Whether some font has every letter of the text.
bool has_all_letters(std::string_view text);

}  // namespace routing
