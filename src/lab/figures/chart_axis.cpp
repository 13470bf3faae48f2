#include "lab/figures/chart_axis.h"

#include "routing/core/error.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/core.h>
#include <numeric>
#include <string_view>

namespace routing {
namespace {

// Sums of decimal fractions miss round numbers by a few of the last bits.
constexpr double kTolerance = 1e-9;

// How many decimals a multiple of the step can have.
int decimals_of(double step) {
  constexpr int kMostDecimals = 9;
  int decimals = 0;
  while (decimals < kMostDecimals && std::abs(step - std::round(step)) > kTolerance * step) {
    step *= 10.0;
    ++decimals;
  }
  return decimals;
}

std::string without_trailing_zeros(std::string number) {
  if (number.find('.') == std::string::npos) return number;
  number.erase(number.find_last_not_of('0') + 1);
  if (number.back() == '.') number.pop_back();
  return number;
}

std::string tick_label(double value, double step) {
  struct Unit {
    double size;
    std::string_view letter;
  };
  constexpr auto kUnits = std::to_array<Unit>({{1e9, "G"}, {1e6, "M"}, {1e3, "k"}});
  const double magnitude = std::abs(value);
  if (magnitude >= 1e12 || (step < 1e-6 && value != 0.0)) {
    return fmt::format("{:g}", value);
  }
  for (const Unit& unit : kUnits) {
    if (magnitude < unit.size * (1.0 - kTolerance)) continue;
    const std::string number = fmt::format("{:.{}f}", value / unit.size, decimals_of(step / unit.size));
    return without_trailing_zeros(number) + std::string(unit.letter);
  }
  return fmt::format("{:.{}f}", value, decimals_of(step));
}

// Labels that touch each other and so stand `gap` apart as one bundle.
struct Bundle {
  double sum_of_firsts = 0.0;  // where each member would like the bundle to begin
  std::size_t count = 0;
};

}  // namespace

double round_step(double length, int most) {
  require<InputError>(length > 0.0 && std::isfinite(length) && most >= 1, "an axis of length ", length, " with ", most,
                      " steps cannot be; both must be above 0");
  const double least = length / most;
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least * (1.0 - kTolerance)) return factor * power;
  }
  return 10.0 * power;
}

std::vector<AxisTick> ticks_of(const AxisRange& range, double step) {
  std::vector<AxisTick> ticks;
  const double first = std::ceil(range.low / step - kTolerance);
  const double last = std::floor(range.high / step + kTolerance);
  // Counted from the first: adding 1 to a huge number may not change it.
  for (double i = 0.0; i <= last - first; ++i) {
    // Adding 0 turns a negative zero into a plain one.
    const double value = (first + i) * step + 0.0;
    ticks.push_back({value, tick_label(value, step)});
  }
  return ticks;
}

std::vector<AxisTick> doubling_ticks(const AxisRange& range, int most) {
  require<InputError>(range.low > 0.0 && range.high >= range.low && std::isfinite(range.high) && most >= 1,
                      "a doubling axis from ", range.low, " to ", range.high, " with ", most,
                      " ticks cannot be; its ends must be above 0 and rise, with at least one tick");
  const double first = std::ceil(std::log2(range.low) - kTolerance);
  const double last = std::floor(std::log2(range.high) + kTolerance);
  const double stride = std::max(1.0, std::ceil((last - first + 1.0) / most));
  std::vector<AxisTick> ticks;
  for (double power = first; power <= last; power += stride) {
    ticks.push_back({std::exp2(power), fmt::format("{:.15g}", std::exp2(power))});
  }
  return ticks;
}

AxisRange rounded_outwards(const AxisRange& range, double step) {
  return {std::floor(range.low / step + kTolerance) * step, std::ceil(range.high / step - kTolerance) * step};
}

std::vector<double> smoothed(const std::vector<double>& values, std::size_t reach) {
  std::vector<double> result;
  result.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    // Least squares with x counted from i, so the wanted height is the intercept.
    double weights = 0.0, sum_x = 0.0, sum_xx = 0.0, sum_y = 0.0, sum_xy = 0.0;
    const std::size_t last = std::min(i + reach, values.size() - 1);
    for (std::size_t j = i - std::min(i, reach); j <= last; ++j) {
      const double x = static_cast<double>(j) - static_cast<double>(i);
      const double weight = static_cast<double>(reach) + 1.0 - std::abs(x);
      weights += weight;
      sum_x += weight * x;
      sum_xx += weight * x * x;
      sum_y += weight * values[j];
      sum_xy += weight * x * values[j];
    }
    const double determinant = weights * sum_xx - sum_x * sum_x;
    result.push_back(determinant > 0.0 ? (sum_xx * sum_y - sum_x * sum_xy) / determinant : values[i]);
  }
  return result;
}

std::vector<double> exponential_mean(const std::vector<double>& values, double kept) {
  std::vector<double> means;
  double sum = 0.0;
  double weights = 0.0;
  for (const double value : values) {
    sum = kept * sum + value;
    weights = kept * weights + 1.0;
    means.push_back(sum / weights);
  }
  return means;
}

std::vector<double> spread_apart(const std::vector<double>& wanted, double gap, const AxisRange& range) {
  if (wanted.empty()) return {};
  const std::size_t count = wanted.size();
  if (count > 1) gap = std::min(gap, (range.high - range.low) / static_cast<double>(count - 1));
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return wanted[a] < wanted[b]; });

  // Each bundle begins where its members want it on average; bundles that then collide become one.
  const auto begin_of = [&](const Bundle& bundle) {
    const double most = range.high - gap * static_cast<double>(bundle.count - 1);
    return std::clamp(bundle.sum_of_firsts / static_cast<double>(bundle.count), range.low, std::max(range.low, most));
  };
  std::vector<Bundle> bundles;
  for (const std::size_t label : order) {
    bundles.push_back({wanted[label], 1});
    while (bundles.size() > 1) {
      const Bundle last = bundles.back();
      Bundle& before = bundles[bundles.size() - 2];
      const double length = gap * static_cast<double>(before.count);
      if (begin_of(before) + length <= begin_of(last)) break;
      before.sum_of_firsts += last.sum_of_firsts - length * static_cast<double>(last.count);
      before.count += last.count;
      bundles.pop_back();
    }
  }
  std::vector<double> places(count);
  std::size_t next = 0;
  for (const Bundle& bundle : bundles) {
    for (std::size_t i = 0; i < bundle.count; ++i) {
      places[order[next++]] = begin_of(bundle) + gap * static_cast<double>(i);
    }
  }
  return places;
}

}  // namespace routing
