#include "histogram.h"

#include <algorithm>
#include <cmath>

namespace kvbench {

void Histogram::merge(const Histogram& other) {
  for (std::size_t i = 0; i < BUCKETS; i++) {
    counts_[i] += other.counts_[i];
  }
  count_ += other.count_;
  sum_ += other.sum_;
  squares_ += other.squares_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

double Histogram::mean_us() const {
  return count_ == 0 ? 0.0 : sum_ / static_cast<double>(count_) / 1e3;
}

double Histogram::stddev_us() const {
  if (count_ == 0) {
    return 0.0;
  }
  const auto n = static_cast<double>(count_);
  const double variance = squares_ / n - (sum_ / n) * (sum_ / n);
  return std::sqrt(std::max(0.0, variance)) / 1e3;
}

std::uint64_t Histogram::low_ns(std::size_t bucket) {
  const std::size_t shift = bucket >> SUB_BITS;
  if (shift <= 1) {
    return bucket;
  }
  const std::uint64_t top = (bucket & ((1U << SUB_BITS) - 1)) + (1U << SUB_BITS);
  return top << (shift - 1);
}

double Histogram::high_ns(std::size_t bucket) {
  const std::size_t shift = bucket >> SUB_BITS;
  const std::uint64_t width = shift <= 1 ? 1 : std::uint64_t{1} << (shift - 1);
  return static_cast<double>(low_ns(bucket)) + static_cast<double>(width);
}

double Histogram::percentile_us(double percent) const {
  if (count_ == 0) {
    return 0.0;
  }
  const double wanted = static_cast<double>(count_) * (percent / 100.0);
  double seen = 0.0;
  for (std::size_t i = 0; i < BUCKETS; i++) {
    const auto here = static_cast<double>(counts_[i]);
    if (here > 0.0 && seen + here >= wanted) {
      const auto low = static_cast<double>(low_ns(i));
      const double ns = low + (high_ns(i) - low) * ((wanted - seen) / here);
      return std::clamp(ns, static_cast<double>(min_), static_cast<double>(max_)) / 1e3;
    }
    seen += here;
  }
  return max_us();
}

}  // namespace kvbench
