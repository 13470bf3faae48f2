#include "lab/bench/long_scaling.h"

#include <algorithm>

namespace routing::bench {

double network_seconds(const LongModel& model, int ranks) {
  const double n = ranks;
  const double pieces_read = model.reads_all ? n - 1.0 : std::min(1.0, n - 1.0);
  const double bytes = 2.0 * pieces_read * model.row_bytes + 2.0 * model.gradient_bytes * (n - 1.0) / n;
  return bytes * 8.0 / model.bits_per_second + (n - 1.0) * (model.layers + 2.0) * model.latency_seconds;
}

double step_seconds(const LongModel& model, int ranks) {
  return model.compute_seconds + (ranks == 1 ? 0.0 : network_seconds(model, ranks));
}

double speedup(const LongModel& model, int ranks) {
  return static_cast<double>(ranks) * model.compute_seconds / step_seconds(model, ranks);
}

double row_bytes_for_one(double bytes_sent, double gradient_bytes, int ranks) {
  if (ranks < 2) return 0.0;
  const double n = ranks;
  return std::max(0.0, bytes_sent - 2.0 * gradient_bytes * (n - 1.0) / n) / (n - 1.0);
}

}  // namespace routing::bench
