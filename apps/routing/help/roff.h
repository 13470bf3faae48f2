// Text as man(7) wants it.
#pragma once

#include <string>
#include <string_view>

namespace routing {

// Letters that mean something to roff are written by their names, and no line begins with a request. Dashes of options
// are ASCII ones, others as roff likes them.
std::string roff_text(std::string_view text);
// The same for what is typed into a shell: every dash is an ASCII one.
std::string roff_literal(std::string_view text);
std::string roff_bold(std::string_view text);
std::string roff_italic(std::string_view text);

}  // namespace routing
