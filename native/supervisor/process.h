// One process, as /proc shows it. A pid alone names nothing for long: every
// process is known by its pid and its start time, and signalled only while both fit.

#ifndef BR_PROCESS_H_
#define BR_PROCESS_H_

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process_id {
  pid_t pid;
  uint64_t start_time;  // field 22 of /proc/PID/stat: clock ticks since boot
};

struct process_stat {
  struct process_id id;
  pid_t parent;
  char state;  // 'Z' = ended and not yet waited for
  // These include the children that the process has waited for.
  int64_t user_ticks, system_ticks;
  int64_t minor_faults, major_faults;
  // These are the process's own.
  int64_t threads;
  uint64_t virtual_bytes;  // 0 from the beginning of its end
  int64_t rss_pages;
};

// False when there is no such process (any more).
bool process_read_stat(pid_t pid, struct process_stat* out);

// Not there, another one with the same pid, and a zombie are all dead.
bool process_is_alive(struct process_id id);

// Returns 0 or an errno; ESRCH when the pid has ended or means another process now.
int process_signal(struct process_id id, int signal);

// The same with a value, which the receiver finds in siginfo's si_value.
int process_signal_with_value(struct process_id id, int signal, int value);

#endif
