// What a lock and a system call cost.
#include <sys/syscall.h>
#include <unistd.h>

#include <future>
#include <memory>
#include <mutex>
#include <thread>

#include "cases.h"

namespace hostbench {

namespace {

constexpr int OPERATIONS_PER_ITERATION = 32;

// A thread that sleeps. While there is only one thread the C library locks without atomic
// instructions, which is not what a lock costs in a program that needs it.
class Bystander {
 public:
  Bystander() : thread_([over = over_.get_future()] { over.wait(); }) {}
  ~Bystander() {
    over_.set_value();
    thread_.join();
  }

 private:
  std::promise<void> over_;
  std::thread thread_;
};

void lock_and_unlock(benchmark::State& state, std::mutex& mutex) {
  const Bystander other;
  for (auto _ : state) {
    for (int i = 0; i < OPERATIONS_PER_ITERATION; i++) {
      mutex.lock();
      benchmark::ClobberMemory();
      mutex.unlock();
    }
  }
  if (state.thread_index() == 0) {
    state.counters[OPERATIONS] = OPERATIONS_PER_ITERATION;
  }
}

Case lock_case(const std::string& name, const std::string& meaning, int threads) {
  const auto mutex = std::make_shared<std::mutex>();
  return {name, Quantity::TIME, meaning, 0, threads, threads > 1,
          [mutex](benchmark::State& state) { lock_and_unlock(state, *mutex); }};
}

void system_call(benchmark::State& state) {
  for (auto _ : state) {
    for (int i = 0; i < OPERATIONS_PER_ITERATION; i++) {
      benchmark::DoNotOptimize(syscall(SYS_getppid));
    }
  }
  state.counters[OPERATIONS] = OPERATIONS_PER_ITERATION;
}

}  // namespace

std::vector<Case> lock_cases(const Options& options) {
  const int threads = static_cast<int>(options.threads);
  std::vector<Case> cases = {
      lock_case("mutex/uncontended", "lock and unlock a mutex that nobody else wants", 1)};
  if (threads > 1) {
    cases.push_back(lock_case("mutex/contended/" + std::to_string(threads) + "-threads",
                              "the same mutex, wanted by all threads all the time", threads));
  }
  cases.push_back({"syscall", Quantity::TIME, "getppid, which does next to nothing in the kernel", 0,
                   1, false, system_call});
  return cases;
}

}  // namespace hostbench
