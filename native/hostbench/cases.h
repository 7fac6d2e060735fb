// What can be measured: a case is a name, what its time means, and the loop that Google Benchmark runs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "options.h"

namespace hostbench {

// What one iteration did, as counters of the state: how often, or how much.
inline constexpr const char* OPERATIONS = "operations";
inline constexpr const char* BYTES = "bytes";
inline constexpr const char* GIGAHERTZ = "gigahertz";  // how fast the processor ran meanwhile
inline constexpr const char* HUGE_PERCENT = "huge_percent";  // of the memory, in huge pages

enum class Quantity {
  LATENCY,    // ns of one dependent load
  BANDWIDTH,  // bytes read, written or copied per second
  TIME,       // ns of one operation
  HASHING,    // bytes hashed per second
};

struct Case {
  std::string name;
  Quantity quantity;
  std::string meaning;
  std::uint64_t size_bytes = 0;
  int threads = 1;
  // Whether it waits for another thread or process: then the clock counts, else its own CPU time,
  // which the rest of a busy host disturbs less.
  bool waits = false;
  std::function<void(benchmark::State&)> run;
};

// Every case of these options, in the order in which they run.
std::vector<Case> memory_cases(const Options& options);
std::vector<Case> lock_cases(const Options& options);
std::vector<Case> switch_cases(const Options& options);
std::vector<Case> hash_cases(const Options& options);

// "4KiB", "1536B".
std::string size_text(std::uint64_t bytes);

}  // namespace hostbench
