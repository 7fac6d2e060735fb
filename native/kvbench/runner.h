// Runs one phase with all its threads, which start together, and merges what they did.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workload.h"

namespace kvbench {

struct PhaseResult {
  std::string name;
  std::uint64_t run = 1;
  std::string role;  // empty, "reader" or "writer"
  std::string operation;
  unsigned threads = 1;
  bool searched = false;  // found and asked mean something
  Stats stats;
};

// One result, or two: readers and their writer. Throws the first Failure of any thread.
std::vector<PhaseResult> run_phase(const Workload& workload, std::uint64_t run,
                                   const Options& options, const Values& values, Engine& engine);

// What the driver itself costs per operation, in nanoseconds, with these options.
struct DriverCost {
  double write_ns = 0.0;
  double read_ns = 0.0;
};
DriverCost measure_driver(const Options& options, const Values& values);

// "PHASE THREAD NUMBER KEY-IN-HEX" for the first keys of each thread, without an engine.
std::string first_keys(const Workload& workload, std::uint64_t run, const Options& options,
                       const Values& values);

}  // namespace kvbench
