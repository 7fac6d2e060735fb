#define _GNU_SOURCE
#include "process.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "files.h"

bool process_read_stat(pid_t pid, struct process_stat* out) {
  char path[64];
  char stat[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  if (read_file(path, stat, sizeof stat) < 0) {
    return false;
  }
  // The command name may hold blanks and brackets, so fields count from its end.
  const char* fields = strrchr(stat, ')');
  int parent;
  int64_t user, system, waited_user, waited_system;
  int64_t minor, waited_minor, major, waited_major;
  if (fields == NULL ||
      sscanf(fields,
             ") %c %d %*s %*s %*s %*s %*s %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64
             " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %*s %*s %" SCNd64 " %*s %" SCNu64
             " %" SCNu64 " %" SCNd64,
             &out->state, &parent, &minor, &waited_minor, &major, &waited_major, &user, &system,
             &waited_user, &waited_system, &out->threads, &out->id.start_time,
             &out->virtual_bytes, &out->rss_pages) != 14) {
    return false;
  }
  out->id.pid = pid;
  out->parent = parent;
  out->user_ticks = user + waited_user;
  out->system_ticks = system + waited_system;
  out->minor_faults = minor + waited_minor;
  out->major_faults = major + waited_major;
  return true;
}

static bool is_same_process(struct process_id id, struct process_stat* stat) {
  return process_read_stat(id.pid, stat) && stat->id.start_time == id.start_time;
}

bool process_is_alive(struct process_id id) {
  struct process_stat stat;
  return is_same_process(id, &stat) && stat.state != 'Z' && stat.state != 'X';
}

// A descriptor that keeps meaning this process even after its pid is reused.
static int open_pidfd(pid_t pid) {
#ifdef SYS_pidfd_open
  return (int)syscall(SYS_pidfd_open, pid, 0);
#else
  (void)pid;
  errno = ENOSYS;
  return -1;
#endif
}

static int send_through_pidfd(int fd, int signal, const siginfo_t* info) {
#ifdef SYS_pidfd_send_signal
  return (int)syscall(SYS_pidfd_send_signal, fd, signal, info, 0);
#else
  (void)fd, (void)signal, (void)info;
  errno = ENOSYS;
  return -1;
#endif
}

// `value` NULL = a plain signal.
static int send_signal(struct process_id id, int signal, const int* value) {
  // Opened first and compared then: whatever the descriptor means cannot change
  // between the two. Kernels before 5.3 leave a gap of some microseconds.
  const int fd = open_pidfd(id.pid);
  if (fd < 0 && errno == ESRCH) {
    return ESRCH;
  }
  int result = -1;
  struct process_stat stat;
  if (!is_same_process(id, &stat)) {
    errno = ESRCH;
  } else if (fd >= 0) {
    siginfo_t info = {.si_signo = signal, .si_code = SI_QUEUE};
    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_int = value == NULL ? 0 : *value;
    result = send_through_pidfd(fd, signal, value == NULL ? NULL : &info);
  } else if (value == NULL) {
    result = kill(id.pid, signal);
  } else {
    result = sigqueue(id.pid, signal, (union sigval){.sival_int = *value});
  }
  const int error = result == 0 ? 0 : errno;
  if (fd >= 0) {
    close(fd);
  }
  return error;
}

int process_signal(struct process_id id, int signal) { return send_signal(id, signal, NULL); }

int process_signal_with_value(struct process_id id, int signal, int value) {
  return send_signal(id, signal, &value);
}
