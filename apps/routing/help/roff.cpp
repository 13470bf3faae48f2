#include "help/roff.h"

namespace routing {
namespace {

enum class Dashes { all, of_options };

std::string name_of(char letter, bool is_typed) {
  switch (letter) {
    case '\\':
      return "\\e";
    // In running text groff turns these into typographic ones.
    case '\'':
      return "\\(aq";
    case '`':
      return "\\(ga";
    case '^':
      return "\\(ha";
    case '~':
      return "\\(ti";
    case '-':
      return is_typed ? "\\-" : "-";
    default:
      return {letter};
  }
}

std::string escaped(std::string_view text, Dashes typed) {
  std::string result;
  char before = '\n';
  for (const char letter : text) {
    if (before == '\n' && letter == '.') result += "\\&";
    const bool begins_option = before == ' ' || before == '\n' || before == '-';
    result += name_of(letter, typed == Dashes::all || begins_option);
    before = letter;
  }
  return result;
}

}  // namespace

std::string roff_text(std::string_view text) {
  return escaped(text, Dashes::of_options);
}

std::string roff_literal(std::string_view text) {
  return escaped(text, Dashes::all);
}

std::string roff_bold(std::string_view text) {
  return "\\fB" + roff_literal(text) + "\\fR";
}

std::string roff_italic(std::string_view text) {
  return "\\fI" + roff_literal(text) + "\\fR";
}

}  // namespace routing
