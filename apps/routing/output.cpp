#include "output.h"

#include <iomanip>
#include <iostream>
#include <sstream>

namespace routing {

std::string fixed_digits(double value, int digits) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(digits) << value;
  return text.str();
}

void print_pairs(const std::vector<std::pair<std::string, std::string>>& pairs, int column) {
  for (const auto& [name, value] : pairs) std::cout << std::left << std::setw(column) << name << value << "\n";
}

}  // namespace routing
