#include "partner.h"

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace hostbench {

struct OneProcessor::Saved {
  cpu_set_t mask;
};

OneProcessor::OneProcessor() : saved_(new Saved) {
  CPU_ZERO(&saved_->mask);
  sched_getaffinity(0, sizeof saved_->mask, &saved_->mask);
  const int here = sched_getcpu();
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(here < 0 ? 0 : here), &one);
  sched_setaffinity(0, sizeof one, &one);
}

OneProcessor::~OneProcessor() {
  sched_setaffinity(0, sizeof saved_->mask, &saved_->mask);
  delete saved_;
}

void Turn::wake() {
  syscall(SYS_futex, reinterpret_cast<int*>(&word_), shared_ ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE, 1,
          nullptr, nullptr, 0);
}

void Turn::wait_while(int value) {
  while (word_.load(std::memory_order_acquire) == value) {
    syscall(SYS_futex, reinterpret_cast<int*>(&word_), shared_ ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE,
            value, nullptr, nullptr, 0);
  }
}

void Turn::pass_and_wait() {
  word_.store(YOURS, std::memory_order_release);
  wake();
  wait_while(YOURS);
}

void Turn::answer() {
  for (;;) {
    wait_while(MINE);
    if (word_.load(std::memory_order_acquire) == OVER) {
      return;
    }
    word_.store(MINE, std::memory_order_release);
    wake();
  }
}

void Turn::end() {
  word_.store(OVER, std::memory_order_release);
  wake();
}

Child::Child(const std::function<void()>& work) {
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) {
    // Nobody is left to wake it when the parent dies, even if that was before this call.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent) {
      work();
    }
    _exit(0);
  }
}

Child::~Child() {
  if (pid_ <= 0) {
    return;
  }
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

double context_switches() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_nvcsw + usage.ru_nivcsw);
}

}  // namespace hostbench
