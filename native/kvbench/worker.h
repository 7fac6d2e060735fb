// One thread of a phase: its keys, its clock, its counts. Nothing here is shared but one flag,
// which is read only when the clock is looked at.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "clock.h"
#include "engine.h"
#include "histogram.h"
#include "keys.h"
#include "options.h"

namespace kvbench {

// What a thread did. Only its own thread touches it until that has ended.
struct Stats {
  std::uint64_t operations = 0;
  std::uint64_t bytes = 0;
  std::uint64_t found = 0;
  std::uint64_t asked = 0;
  std::int64_t start_ns = 0;
  std::int64_t finish_ns = 0;
  double thread_seconds = 0.0;
  Histogram histogram;

  void merge(const Stats& other);
};

enum class Order { sequential, random, unique };

// What all threads of a phase have in common; constant while they run.
struct PhasePlan {
  const Options* options = nullptr;
  const Values* values = nullptr;
  std::string name;
  std::uint64_t run = 1;
  Order order = Order::random;
  std::uint64_t operations = 0;  // of a thread; 0: no limit
  std::uint64_t batch = 1;
  bool timed = false;  // ends by --duration if that is given
  unsigned threads = 1;
  double bytes_per_s = 0.0;  // of one writing thread; 0: no limit
  std::atomic<bool> stop{false};  // set once, when a thread failed or the readers are done
};

class alignas(64) Worker {
 public:
  Worker(PhasePlan& plan, unsigned index);

  // Whether there is another operation to do. Looks at the clock now and then only.
  bool go_on() {
    if (stats.operations >= limit_) {
      return false;
    }
    return --until_check_ != 0 || check();
  }

  // `operations` took from the end of the last call to now: one look at the clock, as in db_bench.
  void finished(std::uint64_t operations, std::uint64_t bytes) {
    stats.operations += operations;
    stats.bytes += bytes;
    if (histogram_) {
      const std::int64_t now = now_ns();
      stats.histogram.add(now - last_ns_);
      last_ns_ = now;
    }
  }
  // What happened since the last operation is no part of the next one.
  void restart_operation() {
    if (histogram_) {
      last_ns_ = now_ns();
    }
  }

  std::uint64_t remaining() const { return limit_ - stats.operations; }
  void start();
  void end();
  void pace(std::uint64_t bytes);  // waits as the rate limit asks
  std::uint64_t next_number();     // of the next key, in the order of the phase
  std::uint64_t next_generation() { return generation_++; }
  void verify_value(std::uint64_t number, std::string_view value) const;

  const Options& options() const { return *plan_.options; }
  const PhasePlan& plan() const { return plan_; }
  const Values& values() const { return *plan_.values; }
  bool stopped() const { return plan_.stop.load(std::memory_order_relaxed); }

  Stats stats;
  std::unique_ptr<Session> session;

 private:
  bool check();
  void report(std::int64_t now);

  PhasePlan& plan_;
  unsigned index_;
  bool histogram_;
  Random random_;
  Permutation permutation_;
  std::uint64_t limit_;
  std::uint64_t sequence_ = 0;
  std::uint64_t generation_;
  std::int64_t last_ns_ = 0;
  std::int64_t deadline_ns_ = 0;
  std::uint64_t stride_ = 1;  // operations between two looks at the clock
  std::uint64_t until_check_ = 1;
  std::int64_t last_check_ns_ = 0;
  std::int64_t pace_start_ns_ = 0;
  double pace_bytes_ = 0.0;
  std::int64_t report_ns_ = 0;
  std::uint64_t reported_ = 0;
};

}  // namespace kvbench
