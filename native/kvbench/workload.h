// The benchmarks by name: what one thread does in each.
#pragma once

#include <string>
#include <vector>

#include "worker.h"

namespace kvbench {

struct Workload {
  const char* name;
  const char* meaning;
  const char* operation;      // "Microseconds per OPERATION:"
  void (*run)(Worker&);       // null: the engine does it in one call, see runner.cc
  void (*beside)(Worker&);    // one more thread that does this, reported as NAME.writer; or null
  Order order = Order::random;
  bool fresh = false;         // begins with an empty database
  bool writes = false;        // --writes and the rate limit apply, not --reads
  bool timed = true;          // --duration applies
  bool sync = false;          // durable whatever --sync says
  std::uint64_t batch = 1;    // when --batch_size says nothing
  std::uint64_t part = 1;     // does so much less than asked for
};

const std::vector<Workload>& workloads();
const Workload& workload_named(const std::string& name);  // UsageError

}  // namespace kvbench
