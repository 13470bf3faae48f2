#include "train/quickstart_size.h"

#include "routing/core/error.h"

#include <algorithm>
#include <fmt/core.h>

namespace routing {
namespace {

std::string in_millions(std::int64_t bytes) {
  return fmt::format("{:.1f} million", static_cast<double>(bytes) * 1e-6);
}

}  // namespace

const std::vector<QuickstartSize>& quickstart_sizes() {
  // The presets say how they were found.
  static const std::vector<QuickstartSize> sizes{{.preset = "quickstart-small"},
                                                 {.preset = "quickstart-medium", .least_bytes = 12'000'000}};
  return sizes;
}

const QuickstartSize& size_that_pays(const std::vector<QuickstartSize>& sizes, std::int64_t bytes) {
  const auto larger =
      std::find_if(sizes.begin(), sizes.end(), [&](const QuickstartSize& size) { return size.least_bytes > bytes; });
  require<InputError>(larger != sizes.begin(), "no size pays where the smallest reads ", bytes,
                      " bytes; let the first of ", sizes.size(), " pay from 0 on");
  return *std::prev(larger);
}

std::string size_reason(const std::vector<QuickstartSize>& sizes, std::int64_t bytes) {
  const QuickstartSize& chosen = size_that_pays(sizes, bytes);
  const auto larger = static_cast<std::size_t>(&chosen - sizes.data()) + 1;
  std::string text = chosen.preset + ", because the smallest model reads " + in_millions(bytes) + " bytes here";
  if (larger < sizes.size()) {
    text += "; " + sizes[larger].preset + " pays from " + in_millions(sizes[larger].least_bytes) + " on";
  }
  return text;
}

}  // namespace routing
