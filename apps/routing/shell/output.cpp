#include "shell/output.h"

#include "routing/core/error.h"

#include <cerrno>
#include <csignal>
#include <fmt/core.h>
#include <iomanip>
#include <iostream>

namespace routing {

std::string fixed_digits(double value, int digits) {
  return fmt::format("{:.{}f}", value, digits);
}

std::string harmless_lines(std::string text) {
  for (std::size_t place = 0; place < text.size(); ++place) {
    const auto byte = static_cast<unsigned char>(text[place]);
    // U+0080 to U+009F, as UTF-8, are the control characters of eight bits.
    const bool begins_control = byte == 0xC2 && place + 1 < text.size() &&
                                static_cast<unsigned char>(text[place + 1]) >= 0x80 &&
                                static_cast<unsigned char>(text[place + 1]) < 0xA0;
    if (begins_control) text.erase(place + 1, 1);
    if (begins_control || (byte < 0x20 && byte != '\n') || byte == 0x7F) text[place] = '?';
  }
  return text;
}

std::string weights_text(std::int64_t weights) {
  const auto value = static_cast<double>(weights);
  return weights >= 1'000'000 ? fixed_digits(value / 1e6, 1) + " M" : fixed_digits(value / 1e3, 0) + " k";
}

void print_pairs(const std::vector<std::pair<std::string, std::string>>& pairs, int column) {
  for (const auto& [name, value] : pairs) std::cout << std::left << std::setw(column) << name << value << "\n";
}

Report& Report::fact(const std::string& key, nlohmann::ordered_json value) {
  facts_[key] = std::move(value);
  return *this;
}

Report& Report::line(const std::string& label, const std::string& text) {
  lines_.emplace_back(label, text);
  return *this;
}

void Report::print(bool json, int column) const {
  if (json) {
    std::cout << facts_ << "\n";
  } else {
    print_pairs(lines_, column);
  }
}

void write_now(std::string_view text) {
  errno = 0;
  std::cout << text << std::flush;
  if (std::cout) return;
  if (errno == EPIPE) {
    // Somebody above us had the signal ignored.
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
  }
  throw FileError("the text could not be written to standard output; is the disk full?");
}

}  // namespace routing
