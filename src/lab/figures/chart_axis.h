// Arithmetic of charts: ranges, round ticks, smooth lines, labels that do not overlap.
#pragma once

#include <string>
#include <vector>

namespace routing {

struct AxisRange {
  double low = 0.0;
  double high = 1.0;
  friend bool operator==(const AxisRange&, const AxisRange&) = default;
};

struct AxisTick {
  double value = 0.0;
  std::string label;  // "0.5", "250", "1.5k", "20M"
  friend bool operator==(const AxisTick&, const AxisTick&) = default;
};

// 1, 2 or 5 times a power of ten: the smallest that needs at most `most` steps for the length, which is > 0; most >= 1.
double round_step(double length, int most);

// The multiples of the step inside the range, with labels just long enough to tell them apart.
std::vector<AxisTick> ticks_of(const AxisRange& range, double step);

// On a doubling axis equal lengths are equal ratios.
enum class AxisScale { linear, doubling };

// Powers of two in the range, whose ends are above 0, in full ("64", "4096"): every one, or every second, third … so
// that there are at most `most` >= 1.
std::vector<AxisTick> doubling_ticks(const AxisRange& range, int most);

// The range, widened to whole steps.
AxisRange rounded_outwards(const AxisRange& range, double step);

// Each value becomes the height, at its place, of the straight line that fits its neighbours up to `reach` places away
// best; weights fall in a straight line to both sides. A straight line so stays what it is, also near its ends.
std::vector<double> smoothed(const std::vector<double>& values, std::size_t reach);

// The mean of each value and all before it, whose weights fall by the factor `kept`, from 0 to below 1, per place: the
// smoothing of TensorBoard. The first value stays what it is.
std::vector<double> exponential_mean(const std::vector<double>& values, double kept);

// Places near the wanted ones, in the same order, at least `gap` apart and inside the range; closer only if there are
// too many for it. Labels that would collide move apart equally far.
std::vector<double> spread_apart(const std::vector<double>& wanted, double gap, const AxisRange& range);

}  // namespace routing
