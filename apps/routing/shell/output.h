// Numbers and tables as the commands print them.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace routing {

// "2.194": so many digits after the point.
std::string fixed_digits(double value, int digits);

// Names and bytes of files in a message may be what a terminal obeys: control characters become '?', but line ends
// stay.
std::string harmless_lines(std::string text);

// "490.7 M", "812 k".
std::string weights_text(std::int64_t weights);

// A line per pair on standard output: the name, padded to a column of so many letters, then the value.
void print_pairs(const std::vector<std::pair<std::string, std::string>>& pairs, int column);

// What a command found, said once: facts for programs, lines for people.
class Report {
 public:
  Report& fact(const std::string& key, nlohmann::ordered_json value);
  Report& line(const std::string& label, const std::string& text);
  // On standard output: the facts as one JSON object on one line, or the lines as print_pairs() does.
  void print(bool json, int column) const;

 private:
  nlohmann::ordered_json facts_ = nlohmann::ordered_json::object();
  std::vector<std::pair<std::string, std::string>> lines_ = {};
};

// Text on standard output at once, for those who watch. If the reader of a pipe has gone, the program ends as SIGPIPE
// ends others; any other failure is a FileError.
void write_now(std::string_view text);

}  // namespace routing
