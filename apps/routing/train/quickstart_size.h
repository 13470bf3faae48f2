// Which model `routing quickstart` trains: a small one learns more from few bytes, a larger one from many.
//
// A machine is as fast as the bytes that the smallest model can read on it in the time there is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace routing {

struct QuickstartSize {
  std::string preset;
  // From so many bytes of the smallest on, this one ends with fewer bits in the same time.
  std::int64_t least_bytes = 0;
};

// From small to large; the first is for every machine.
const std::vector<QuickstartSize>& quickstart_sizes();

// The last size that pays where the smallest reads so many bytes. An InputError if not even the first does.
const QuickstartSize& size_that_pays(const std::vector<QuickstartSize>& sizes, std::int64_t bytes);

// Why, for people: "quickstart-small, because the smallest model reads 4.4 million bytes here; quickstart-medium pays
// from 6.0 million on".
std::string size_reason(const std::vector<QuickstartSize>& sizes, std::int64_t bytes);

}  // namespace routing
