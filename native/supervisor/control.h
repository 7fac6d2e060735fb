// The life of a command and its process tree: waits for the end, samples meanwhile, ends
// what is over its time, was asked to stop, or was left behind.

#ifndef BR_CONTROL_H_
#define BR_CONTROL_H_

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "child.h"
#include "measuring.h"
#include "tree.h"

enum phase {
  PHASE_RUNNING,
  PHASE_SETTLING,     // the command has ended, others get a moment to do so too
  PHASE_TERMINATING,  // SIGTERM was sent
  PHASE_KILLING,      // SIGKILL is sent until nothing is left
};

struct control {
  struct child child;
  int64_t begin_ns;  // monotonic: when the child was forked
  int64_t timeout_ns, grace_ns;
  struct tree tree;
  struct measuring* measuring;
  sigset_t signals;  // blocked, and waited for
  bool child_ended, tree_ended;
  enum phase phase;
  int64_t phase_end_ns;  // monotonic
  int64_t kill_pause_ns;

  // The outcome.
  const char* state;  // "exited", "timeout" or "killed"
  int wait_status;    // of the command
  int64_t wall_us, ended_unix_ns;
  int64_t leftover_processes;
};

// Makes this process the reaper of the tree to come, and SIGTERM and SIGINT requests to
// stop, which wait until control_run_to_end().
void control_init(struct control* s, int64_t timeout_ns, int64_t grace_ns);
void control_free(struct control* s);

// The caller has set child and begin_ns. Returns when the whole tree has ended.
void control_run_to_end(struct control* s, struct measuring* measuring);

// A du_interrupt: has the command ended, or is a stop asked for? A walk over directories
// must not delay either.
bool control_has_news(void* control);

// Sleeps; false when a stop was asked for meanwhile.
bool control_pause(const struct control* s, int64_t ns);

#endif
