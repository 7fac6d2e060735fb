// Context switches: two sides on one processor that wait for each other.
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <new>
#include <thread>

#include "cases.h"
#include "partner.h"

namespace hostbench {

namespace {

// There and back: two switches.
void ping(benchmark::State& state, Turn& turn) {
  for (auto _ : state) {
    turn.pass_and_wait();
  }
  state.counters[OPERATIONS] = 2;
}

void thread_futex(benchmark::State& state) {
  const OneProcessor here;
  Turn turn(false);
  std::thread other([&turn] { turn.answer(); });
  ping(state, turn);
  turn.end();
  other.join();
}

void process_futex(benchmark::State& state) {
  const OneProcessor here;
  void* page = mmap(nullptr, sizeof(Turn), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) {
    state.SkipWithError("the kernel gave no shared memory");
    return;
  }
  auto* turn = new (page) Turn(true);
  {
    const Child other([turn] { turn->answer(); });
    if (other.started()) {
      ping(state, *turn);
    } else {
      state.SkipWithError("no process could be started");
    }
  }
  munmap(page, sizeof(Turn));
}

struct Pipe {
  int ends[2] = {-1, -1};
  bool open() { return pipe(ends) == 0; }
  ~Pipe() {
    close(ends[0]);
    close(ends[1]);
  }
};

void process_pipe(benchmark::State& state) {
  const OneProcessor here;
  Pipe there, back;
  if (!there.open() || !back.open()) {
    state.SkipWithError("no pipe could be made");
    return;
  }
  const Child other([&there, &back] {
    char byte = 0;
    while (read(there.ends[0], &byte, 1) == 1 && write(back.ends[1], &byte, 1) == 1) {
    }
  });
  if (!other.started()) {
    state.SkipWithError("no process could be started");
    return;
  }
  char byte = 0;
  for (auto _ : state) {
    if (write(there.ends[1], &byte, 1) != 1 || read(back.ends[0], &byte, 1) != 1) {
      state.SkipWithError("the other process is gone");
      break;
    }
  }
  state.counters[OPERATIONS] = 2;
}

// The scheduler need not switch when it is asked to: what it did is counted, not what was asked.
void thread_yield(benchmark::State& state) {
  const OneProcessor here;
  std::atomic<bool> over{false};
  std::thread other([&over] {
    while (!over.load(std::memory_order_relaxed)) {
      sched_yield();
    }
  });
  const double before = context_switches();
  for (auto _ : state) {
    sched_yield();
  }
  const double switches = context_switches() - before;
  over = true;
  other.join();
  if (switches <= 0) {
    state.SkipWithError("the scheduler switched to nobody in that time");
    return;
  }
  state.counters[OPERATIONS] = switches / static_cast<double>(state.iterations());
}

Case time_case(const std::string& name, const std::string& meaning,
               void (*run)(benchmark::State&)) {
  return {name, Quantity::TIME, meaning, 0, 1, true, run};
}

}  // namespace

std::vector<Case> switch_cases(const Options&) {
  return {
      time_case("switch/process-pipe", "two processes on one processor pass a byte through pipes",
                process_pipe),
      time_case("switch/process-futex", "two processes on one processor wake each other by futex",
                process_futex),
      time_case("switch/thread-futex", "two threads on one processor wake each other by futex",
                thread_futex),
      time_case("switch/thread-yield", "two threads on one processor call sched_yield",
                thread_yield),
  };
}

}  // namespace hostbench
