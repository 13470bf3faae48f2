#include "lab/figures/figure_font.h"

#include "routing/core/utf8.h"

#include <cairo-ft.h>

#include <algorithm>
#include <fmt/core.h>
#include <fontconfig/fontconfig.h>
#include <map>
#include <mutex>
#include <optional>

namespace routing {
namespace {

// The installed fonts, the usual one first, then by how near they are to it. They live as long as the process, like
// cairo's own caches.
class Fonts {
 public:
  explicit Fonts(bool bold)
      : wanted_(FcPatternBuild(nullptr, FC_FAMILY, FcTypeString, kUsualFont, FC_WEIGHT, FcTypeInteger,
                               bold ? FC_WEIGHT_BOLD : FC_WEIGHT_REGULAR, nullptr)) {
    FcConfigSubstitute(nullptr, wanted_, FcMatchPattern);
    FcDefaultSubstitute(wanted_);
    FcResult result = FcResultNoMatch;
    fonts_ = FcFontSort(nullptr, wanted_, FcTrue, nullptr, &result);
  }

  // The first font with the letter; 0 is the usual one.
  std::optional<int> font_with(FcChar32 letter) const {
    // Without any font cairo draws with its own.
    if (fonts_ == nullptr || fonts_->nfont == 0) return 0;
    for (int i = 0; i < fonts_->nfont; ++i) {
      FcCharSet* letters = nullptr;
      const bool known = FcPatternGetCharSet(fonts_->fonts[i], FC_CHARSET, 0, &letters) == FcResultMatch;
      if (known && FcCharSetHasChar(letters, letter) == FcTrue) return i;
    }
    return std::nullopt;
  }

  cairo_font_face_t* face(int font) {
    if (font == 0) return nullptr;
    const std::lock_guard lock(mutex_);
    cairo_font_face_t*& face = faces_[font];
    if (face == nullptr) {
      FcPattern* prepared = FcFontRenderPrepare(nullptr, wanted_, fonts_->fonts[font]);
      face = cairo_ft_font_face_create_for_pattern(prepared);
      FcPatternDestroy(prepared);
    }
    return face;
  }

 private:
  FcPattern* wanted_ = nullptr;
  FcFontSet* fonts_ = nullptr;
  std::mutex mutex_;
  std::map<int, cairo_font_face_t*> faces_;
};

Fonts& fonts_of(bool bold) {
  static Fonts* const plain = new Fonts(false);
  static Fonts* const heavy = new Fonts(true);
  return bold ? *heavy : *plain;
}

struct Letter {
  std::string_view bytes = {};
  std::optional<FcChar32> number = std::nullopt;  // none for a byte that is not UTF-8
};

Letter first_letter(std::string_view text) {
  const auto* bytes = reinterpret_cast<const FcChar8*>(text.data());
  FcChar32 number = 0;
  const int length = FcUtf8ToUcs4(bytes, &number, static_cast<int>(std::min<std::size_t>(4, text.size())));
  // fontconfig also reads what is written longer than needed; cairo refuses that.
  const bool valid = length > 0 && !first_invalid_utf8(text.substr(0, static_cast<std::size_t>(length)));
  if (!valid) return {.bytes = text.substr(0, 1)};
  return {.bytes = text.substr(0, static_cast<std::size_t>(length)), .number = number};
}

template <class Visit>
void for_each_letter(std::string_view text, const Visit& visit) {
  while (!text.empty()) {
    const Letter letter = first_letter(text);
    visit(letter);
    text.remove_prefix(letter.bytes.size());
  }
}

std::string number_of(const Letter& letter) {
  if (!letter.number) return fmt::format("\\x{:02x}", static_cast<unsigned char>(letter.bytes.front()));
  return fmt::format("\\u{:04x}", *letter.number);
}

}  // namespace

std::vector<FontRun> font_runs(std::string_view text, bool bold) {
  Fonts& fonts = fonts_of(bold);
  std::vector<FontRun> runs;
  for_each_letter(text, [&](const Letter& letter) {
    const std::optional<int> font = letter.number ? fonts.font_with(*letter.number) : std::nullopt;
    cairo_font_face_t* face = fonts.face(font.value_or(0));
    if (runs.empty() || runs.back().face != face) runs.push_back({.face = face});
    runs.back().text += font ? std::string(letter.bytes) : number_of(letter);
  });
  return runs;
}

bool has_all_letters(std::string_view text) {
  bool all = true;
  for_each_letter(text, [&](const Letter& letter) {
    all = all && letter.number && fonts_of(false).font_with(*letter.number).has_value();
  });
  return all;
}

}  // namespace routing
