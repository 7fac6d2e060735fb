// Latencies in nanoseconds: 32 buckets for each power of two, so a bucket is at most 3.2 % wide.
// One per thread, merged when the threads have ended.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace kvbench {

class Histogram {
 public:
  static constexpr unsigned SUB_BITS = 5;
  static constexpr std::size_t BUCKETS = (64 - SUB_BITS + 1) << SUB_BITS;

  void add(std::int64_t latency_ns) {
    const std::uint64_t ns = latency_ns < 0 ? 0 : static_cast<std::uint64_t>(latency_ns);
    counts_[bucket_of(ns)]++;
    count_++;
    const auto value = static_cast<double>(ns);
    sum_ += value;
    squares_ += value * value;
    min_ = ns < min_ ? ns : min_;
    max_ = ns > max_ ? ns : max_;
  }

  void merge(const Histogram& other);

  std::uint64_t count() const { return count_; }
  double min_us() const { return count_ == 0 ? 0.0 : static_cast<double>(min_) / 1e3; }
  double max_us() const { return static_cast<double>(max_) / 1e3; }
  double mean_us() const;
  double stddev_us() const;
  // Linear inside a bucket, never outside of what was seen, as db_bench does it.
  double percentile_us(double percent) const;

  std::uint64_t count_at(std::size_t bucket) const { return counts_[bucket]; }
  // Of the bucket's first and last nanosecond: low <= latency < high.
  static std::uint64_t low_ns(std::size_t bucket);
  static double high_ns(std::size_t bucket);

 private:
  static std::size_t bucket_of(std::uint64_t ns) {
    if (ns < (1U << SUB_BITS)) {
      return static_cast<std::size_t>(ns);
    }
    const unsigned power = 63U - static_cast<unsigned>(__builtin_clzll(ns));
    const unsigned shift = power - SUB_BITS;
    return (static_cast<std::size_t>(shift) << SUB_BITS) + static_cast<std::size_t>(ns >> shift);
  }

  std::array<std::uint64_t, BUCKETS> counts_{};
  std::uint64_t count_ = 0;
  double sum_ = 0.0;
  double squares_ = 0.0;
  std::uint64_t min_ = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t max_ = 0;
};

}  // namespace kvbench
