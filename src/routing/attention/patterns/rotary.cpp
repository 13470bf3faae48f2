#include "routing/attention/patterns/rotary.h"

#include "routing/core/error.h"

#include <cmath>
#include <vector>

namespace routing {
namespace {

constexpr double kBase = 10'000.0;

struct Angles {
  at::Tensor cosines, sines;  // [sequences or 1, 1, tokens, dim / 2]
};

// In double: the angle of position 8192 has few digits left of float's.
Angles angles_of(const at::Tensor& rows, std::span<const std::int64_t> first_positions) {
  const std::int64_t tokens = rows.size(2);
  const std::int64_t half = rows.size(3) / 2;
  const std::vector<std::int64_t> firsts =
      first_positions.empty() ? std::vector<std::int64_t>{0}
                              : std::vector<std::int64_t>(first_positions.begin(), first_positions.end());
  std::vector<double> rates;
  for (std::int64_t j = 0; j < half; ++j) {
    rates.push_back(std::pow(kBase, -static_cast<double>(j) / static_cast<double>(half)));
  }
  at::Tensor cosines = at::empty({static_cast<std::int64_t>(firsts.size()), 1, tokens, half}, at::kDouble);
  at::Tensor sines = at::empty_like(cosines);
  auto* cosine = cosines.data_ptr<double>();
  auto* sine = sines.data_ptr<double>();
  for (const std::int64_t first : firsts) {
    for (std::int64_t token = 0; token < tokens; ++token) {
      for (const double rate : rates) {
        const double angle = static_cast<double>(first + token) * rate;
        *cosine++ = std::cos(angle);
        *sine++ = std::sin(angle);
      }
    }
  }
  const at::TensorOptions type = rows.options().requires_grad(false);
  return {cosines.to(type), sines.to(type)};
}

}  // namespace

at::Tensor rotated(const at::Tensor& rows, std::span<const std::int64_t> first_positions) {
  require<InputError>(rows.dim() == 4 && rows.size(3) % 2 == 0, "rows to be rotated are ", rows.sizes(),
                      ", but must be [batch, heads, tokens, an even number]");
  require<InputError>(first_positions.empty() || static_cast<std::int64_t>(first_positions.size()) == rows.size(0),
                      "rows of ", rows.size(0), " sequences are to be rotated, but ", first_positions.size(),
                      " first positions were given");
  const std::int64_t half = rows.size(3) / 2;
  const Angles angles = angles_of(rows, first_positions);
  const at::Tensor first = rows.narrow(3, 0, half);
  const at::Tensor second = rows.narrow(3, half, half);
  // Products and sums by themselves: each number is rounded alike wherever it stands. Of heads inside of tokens with
  // two numbers each, cat() takes the sizes for an image with its channels last, and does not put the numbers side by
  // side.
  return at::cat({first * angles.cosines - second * angles.sines, second * angles.cosines + first * angles.sines}, 3)
      .contiguous();
}

}  // namespace routing
