#include "routing/evaluation/likelihood.h"

#include "routing/core/error.h"

#include <cmath>
#include <numbers>

namespace routing {

double bits(double nats) {
  return nats / std::numbers::ln2;
}

double bits_per_byte(double total_nats, std::int64_t bytes) {
  require<InputError>(bytes >= 1, "bits per byte of ", bytes, " bytes asked for, but at least 1 is needed");
  return bits(total_nats) / static_cast<double>(bytes);
}

void NatsSum::add(double nats) {
  ++tokens_;
  const double sum = sum_ + nats;
  // The smaller of the two lost its last digits. An infinite sum has none to carry: inf - inf would be undefined.
  if (std::isfinite(sum)) lost_ += std::abs(sum_) >= std::abs(nats) ? (sum_ - sum) + nats : (nats - sum) + sum_;
  sum_ = sum;
}

double NatsSum::total() const {
  return sum_ + lost_;
}

double NatsSum::mean() const {
  require<InputError>(tokens_ >= 1, "the mean of 0 tokens asked for; add some first");
  return total() / static_cast<double>(tokens_);
}

}  // namespace routing
