// The one clock of the driver: CLOCK_MONOTONIC in nanoseconds.
#pragma once

#include <cstdint>
#include <ctime>

namespace kvbench {

constexpr std::int64_t NS_PER_SECOND = 1'000'000'000;
constexpr std::int64_t NS_PER_MS = 1'000'000;

inline std::int64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::int64_t>(t.tv_sec) * NS_PER_SECOND + t.tv_nsec;
}

}  // namespace kvbench
