#define _GNU_SOURCE
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum stage { STAGE_PREPARE, STAGE_CHANGE_DIRECTORY, STAGE_EXECUTE };

struct failure {
  enum stage stage;
  int error;
};

// By system call: libc keeps the first real-time signals to itself and refuses to change them, yet
// a parent can have left them ignored. An action of nothing but zeros is the default one.
void restore_signals(void) {
  static const char default_action[64];
  const size_t set_bytes = (NSIG - 1) / 8;
  for (int s = 1; s < NSIG; s++) {
    syscall(SYS_rt_sigaction, s, default_action, NULL, set_bytes);  // not KILL and STOP
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
}

static void fail(int pipe, enum stage stage) {
  const struct failure failure = {stage, errno};
  if (write(pipe, &failure, sizeof failure) < 0) {
    _exit(126);
  }
  _exit(127);
}

static void become_command(const struct child_setup* setup, pid_t supervisor, int pipe) {
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != supervisor) {
    _exit(126);  // it died before the line above
  }
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null < 0 || dup2(null, 0) < 0 || dup2(setup->stdout_fd, 1) < 0 ||
      dup2(setup->stderr_fd, 2) < 0) {
    fail(pipe, STAGE_PREPARE);
  }
  if (chdir(setup->cwd) != 0) {
    fail(pipe, STAGE_CHANGE_DIRECTORY);
  }
  restore_signals();
  environ = setup->environment;  // execvp looks PATH up here
  execvp(setup->argv[0], setup->argv);
  fail(pipe, STAGE_EXECUTE);
}

int child_fork(const struct child_setup* setup, struct child* child) {
  int pipe[2];
  if (pipe2(pipe, O_CLOEXEC) != 0) {
    return errno;
  }
  const pid_t supervisor = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    become_command(setup, supervisor, pipe[1]);
  }
  const int error = pid < 0 ? errno : 0;
  close(pipe[1]);
  if (error != 0) {
    close(pipe[0]);
    return error;
  }
  struct process_stat stat = {.id.pid = pid};
  process_read_stat(pid, &stat);
  *child = (struct child){.id = stat.id, .error_pipe = pipe[0]};
  return 0;
}

bool child_await_exec(struct child* child, const struct child_setup* setup, struct text* error) {
  struct failure failure;
  ssize_t n;
  do {
    n = read(child->error_pipe, &failure, sizeof failure);
  } while (n < 0 && errno == EINTR);
  close(child->error_pipe);
  child->error_pipe = -1;
  if (n != (ssize_t)sizeof failure) {
    return true;  // closed by the execution
  }
  if (failure.stage == STAGE_EXECUTE) {
    text_printf(error, "cannot execute %s: ", setup->argv[0]);
  } else if (failure.stage == STAGE_CHANGE_DIRECTORY) {
    text_printf(error, "cannot change to directory %s: ", setup->cwd);
  } else {
    text_printf(error, "cannot prepare the process: ");
  }
  text_append_string(error, strerror(failure.error));
  return false;
}
