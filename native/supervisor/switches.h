// Context switches of all threads of a tree, counted so that the sum never falls.
//
// The kernel keeps these per thread and shows them only while the thread lives. So the
// last count seen of each thread is kept: what it did between the last look at it and
// its end is missing, as is a thread that no look ever saw. Only the main threads of
// processes that this one waits for are exact.

#ifndef BR_SWITCHES_H_
#define BR_SWITCHES_H_

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct thread_switches {
  pid_t tid;
  int looks_missed;
  int64_t voluntary, involuntary;
};

struct thread_list {
  struct thread_switches* threads;
  size_t count;
  size_t capacity;
};

struct switches {
  struct thread_list known;    // sorted by tid
  struct thread_list current;  // of the look in progress
  int64_t ended_voluntary, ended_involuntary;
};

// One look: begin, each process of the tree, end. `switches` starts as {0}.
void switches_begin(struct switches* s);
void switches_look_at(struct switches* s, pid_t pid);
void switches_end(struct switches* s, int64_t* voluntary, int64_t* involuntary);

// A zombie that is about to be waited for: its main thread's last counts can still be read.
void switches_count_ended(struct switches* s, pid_t pid);

void switches_free(struct switches* s);

#endif
