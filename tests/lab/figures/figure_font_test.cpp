#include "lab/figures/figure_font.h"

#include "lab/figures/figure_canvas.h"

#include <gtest/gtest.h>

#include <array>
#include <fontconfig/fontconfig.h>
#include <string>

namespace routing::figure_font_test {
namespace {

const std::string kPrivate = "\U000ffffd";  // of private use: no font has it

std::string joined(const std::vector<FontRun>& runs) {
  std::string text;
  for (const FontRun& run : runs) text += run.text;
  return text;
}

TEST(FigureFont, TextOfTheUsualFontIsOneRun) {
  for (const bool bold : {false, true}) {
    const std::vector<FontRun> runs = font_runs("plain, \u00e9 \u2423", bold);
    ASSERT_EQ(runs.size(), 1U);
    EXPECT_EQ(runs[0].text, "plain, \u00e9 \u2423");
    EXPECT_EQ(runs[0].face, nullptr);
  }
  EXPECT_TRUE(font_runs("", false).empty());
}

TEST(FigureFont, LettersThatNoFontHasAreWrittenAsNumbersAndBytesThatAreNoTextToo) {
  EXPECT_EQ(joined(font_runs("a" + kPrivate + "b", false)), "a\\uffffdb");
  EXPECT_EQ(joined(font_runs("a\xe9z", true)), "a\\xe9z");
  EXPECT_EQ(joined(font_runs("\xc0\x80", false)), "\\xc0\\x80") << "NUL, written too long";
  EXPECT_EQ(joined(font_runs("\xe4\xb8", false)), "\\xe4\\xb8") << "cut off";
  EXPECT_TRUE(has_all_letters("plain"));
  EXPECT_FALSE(has_all_letters("plain" + kPrivate));
  EXPECT_FALSE(has_all_letters("\xe9"));
}

// A letter that the usual font lacks and some installed font has; 0 if there is none.
FcChar32 letter_of_another_font() {
  FcPattern* const any = FcPatternCreate();
  FcObjectSet* const wanted = FcObjectSetBuild(FC_FAMILY, FC_CHARSET, nullptr);
  FcFontSet* const fonts = FcFontList(nullptr, any, wanted);
  FcCharSet* usual = FcCharSetCreate();
  FcCharSet* all = FcCharSetCreate();
  for (int i = 0; i < fonts->nfont; ++i) {
    FcChar8* family = nullptr;
    FcCharSet* letters = nullptr;
    if (FcPatternGetString(fonts->fonts[i], FC_FAMILY, 0, &family) != FcResultMatch) continue;
    if (FcPatternGetCharSet(fonts->fonts[i], FC_CHARSET, 0, &letters) != FcResultMatch) continue;
    const bool is_usual = std::string(reinterpret_cast<const char*>(family)) == kUsualFont;
    FcCharSetMerge(is_usual ? usual : all, letters, nullptr);
  }
  FcCharSet* const others = FcCharSetSubtract(all, usual);
  std::array<FcChar32, FC_CHARSET_MAP_SIZE> map{};
  FcChar32 next = 0;
  FcChar32 found = 0;
  for (FcChar32 page = FcCharSetFirstPage(others, map.data(), &next); page != FC_CHARSET_DONE && found == 0;
       page = FcCharSetNextPage(others, map.data(), &next)) {
    for (FcChar32 bit = 0; bit < 256 && found == 0; ++bit) {
      if ((map.at(bit / 32) >> (bit % 32) & 1U) != 0) found = page + bit;
    }
  }
  for (FcCharSet* set : {usual, all, others}) FcCharSetDestroy(set);
  FcFontSetDestroy(fonts);
  FcObjectSetDestroy(wanted);
  FcPatternDestroy(any);
  return found;
}

TEST(FigureFont, OtherLettersAreDrawnInAFontThatHasThem) {
  const FcChar32 number = letter_of_another_font();
  if (number == 0) GTEST_SKIP() << "no installed font has a letter that " << kUsualFont << " lacks";
  std::array<FcChar8, FC_UTF8_MAX_LEN> bytes{};
  const auto length = static_cast<std::size_t>(FcUcs4ToUtf8(number, bytes.data()));
  const std::string letter(reinterpret_cast<const char*>(bytes.data()), length);
  const std::vector<FontRun> runs = font_runs("a" + letter + "b", false);
  ASSERT_EQ(runs.size(), 3U) << std::hex << number;
  EXPECT_EQ(runs[0].face, nullptr);
  EXPECT_EQ(runs[1].text, letter);
  ASSERT_NE(runs[1].face, nullptr);
  EXPECT_EQ(cairo_font_face_status(runs[1].face), CAIRO_STATUS_SUCCESS);
  EXPECT_EQ(runs[2].face, nullptr);
  EXPECT_EQ(font_runs(letter, false).at(0).face, runs[1].face) << "made once";
  EXPECT_TRUE(has_all_letters(letter));
}

TEST(FigureFont, EveryTextCanBeDrawnAndMeasured) {
  const std::string strange = "x\xe9" + kPrivate;
  const std::vector<std::string> texts{"x", strange};
  EXPECT_GT(widest_text(texts, {}), widest_text(std::vector<std::string>{"x"}, {}));
  EXPECT_EQ(widest_text({}, {}), 0.0);
  const std::vector<char> bytes = render_figure({.width = 90, .height = 20, .title = "t"}, FigureFormat::png,
                                                [&](cairo_t* context) { draw_text(context, strange, 5, 15, {}); });
  EXPECT_GT(bytes.size(), 100U);
}

}  // namespace
}  // namespace routing::figure_font_test
