// The other side of a context switch: a thread or a process on the same processor.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <thread>

namespace hostbench {

// Keeps the calling thread, and what it starts, on one processor while it lives.
class OneProcessor {
 public:
  OneProcessor();
  ~OneProcessor();
  OneProcessor(const OneProcessor&) = delete;
  OneProcessor& operator=(const OneProcessor&) = delete;

 private:
  struct Saved;
  Saved* saved_;
};

// Two sides that wake each other through one word: MINE until I pass the turn, then YOURS.
class Turn {
 public:
  enum : int { MINE, YOURS, OVER };

  // For both sides: `shared` memory is needed between processes.
  explicit Turn(bool shared) : shared_(shared) {}

  void pass_and_wait();  // mine to yours, until it is mine again
  void answer();         // the other side: yours to mine, until it is over
  void end();            // nothing more is passed

 private:
  void wake();
  void wait_while(int value);

  std::atomic<int> word_{MINE};
  bool shared_;
};

// A child process that runs `work` and ends; with this object it ends in any case.
class Child {
 public:
  explicit Child(const std::function<void()>& work);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  bool started() const { return pid_ > 0; }

 private:
  pid_t pid_;
};

// Switches that this process and its threads have made, of their own will or not.
double context_switches();

}  // namespace hostbench
