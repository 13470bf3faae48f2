#include "routing/data/images/npy_header.h"

#include "routing/core/error.h"

#include <algorithm>
#include <charconv>
#include <set>

namespace routing {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

class HeaderParser {
 public:
  HeaderParser(std::string_view line, const std::string& where) : line_(line), where_(where) {}

  NpyHeader parse() {
    NpyHeader header;
    std::set<std::string, std::less<>> seen;
    expect("{");
    while (!take("}")) {
      const std::size_t begin = position_;
      const std::string key = quoted();
      if (!seen.insert(key).second) fail("each key once", begin);
      expect(":");
      if (key == "descr") {
        header.descr = quoted();
      } else if (key == "fortran_order") {
        header.fortran_order = truth();
      } else if (key == "shape") {
        header.shape = tuple();
      } else {
        fail("one of the keys descr, fortran_order and shape", begin);
      }
      if (take(",")) continue;
      expect("}");
      break;
    }
    skip_space();
    if (position_ != line_.size()) fail("nothing after the closing brace", position_);
    if (seen.size() != 3) fail("all of the keys descr, fortran_order and shape", position_);
    return header;
  }

 private:
  void skip_space() { position_ = std::min(line_.find_first_not_of(kSpace, position_), line_.size()); }

  bool take(std::string_view word) {
    skip_space();
    if (!line_.substr(position_).starts_with(word)) return false;
    position_ += word.size();
    return true;
  }

  void expect(std::string_view word) {
    if (!take(word)) fail(std::string(word), position_);
  }

  std::string quoted() {
    skip_space();
    const std::size_t begin = position_;
    const char quote = begin < line_.size() ? line_[begin] : '\0';
    if (quote != '\'' && quote != '"') fail("a word in quotes", begin);
    const std::size_t end = line_.find(quote, begin + 1);
    if (end == std::string_view::npos) fail("a closing quote", line_.size());
    position_ = end + 1;
    return std::string(line_.substr(begin + 1, end - begin - 1));
  }

  bool truth() {
    if (take("True")) return true;
    if (take("False")) return false;
    fail("True or False", position_);
  }

  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> numbers;
    expect("(");
    while (!take(")")) {
      numbers.push_back(whole_number());
      if (take(",")) continue;
      expect(")");
      break;
    }
    return numbers;
  }

  std::int64_t whole_number() {
    skip_space();
    std::int64_t number = 0;
    const char* const begin = line_.data() + position_;
    const auto result = std::from_chars(begin, line_.data() + line_.size(), number);
    if (result.ec != std::errc() || number < 0) fail("a whole number below 2^63", position_);
    position_ += static_cast<std::size_t>(result.ptr - begin);
    take("L");  // Python 2 wrote long numbers so
    return number;
  }

  [[noreturn]] void fail(const std::string& expected, std::size_t at) const {
    constexpr std::size_t kShown = 20;
    std::string found;
    for (const char letter : line_.substr(std::min(at, line_.size()), kShown)) {
      found += letter >= ' ' && letter <= '~' ? letter : '?';
    }
    throw FileError(where_ + ": its NumPy header has \"" + found + "\" at letter " + std::to_string(at) + ", but " +
                    expected + " was expected; save it again with numpy.savez");
  }

  std::string_view line_;
  const std::string& where_;
  std::size_t position_ = 0;
};

}  // namespace

NpyHeader parse_npy_header(std::string_view line, const std::string& where) {
  return HeaderParser(line, where).parse();
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "(";
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (axis > 0) text += ", ";
    text += std::to_string(shape[axis]);
  }
  return text + (shape.size() == 1 ? ",)" : ")");
}

}  // namespace routing
