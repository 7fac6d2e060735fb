// Starting the command: own session, default signals, stdin from /dev/null, stdout and
// stderr directly into files, dead together with the supervisor.

#ifndef BR_CHILD_H_
#define BR_CHILD_H_

#include <stdbool.h>
#include <sys/types.h>

#include "process.h"
#include "text.h"

struct child_setup {
  char* const* argv;
  char** environment;
  const char* cwd;
  int stdout_fd;
  int stderr_fd;
};

struct child {
  struct process_id id;
  int error_pipe;  // the child tells here why it could not execute the command
};

// Forks. Returns 0 or an errno. The child's process then exists and goes on by itself.
int child_fork(const struct child_setup* setup, struct child* child);

// Waits until the command is executed. False when it cannot be; `error` says why, and
// the process ends by itself, to be waited for like any other.
bool child_await_exec(struct child* child, const struct child_setup* setup, struct text* error);

// In a child that is about to execute a command: default actions, nothing blocked. Async-signal-safe.
void restore_signals(void);

#endif
