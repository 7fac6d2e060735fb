// A command that `serve` runs: its process, its pipes, its limits.

#ifndef BR_SERVE_RUN_H_
#define BR_SERVE_RUN_H_

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "serve_poll.h"
#include "serve_requests.h"
#include "serve_spawn.h"
#include "serve_wire.h"
#include "text.h"

struct run_job {
  struct spawned process;  // its descriptors are -1 when closed
  int status_slot, input_slot, output_slots[2];
  struct text input;
  size_t input_sent;
  struct text output[2];  // that has not been queued: stdout, stderr
  struct spawn_failure failure;
  bool ended;               // a zombie until the job is over, so that its pid stays its own
  const char* verdict;      // "timeout", "cancelled" or NULL
  bool answered;
  int64_t limit_ns;         // monotonic; INT64_MAX = none
  int64_t drain_limit_ns;   // how long open pipes are waited for
};

// Starts it. False when that failed; the answer is queued then.
bool run_begin(struct run_job* run, const struct demand* demand, const struct frame* frame,
               struct wire* wire);
void run_free(struct run_job* run);

// `bulk`: there is room for output in the queue.
void run_watch(struct run_job* run, struct poll_set* set, bool bulk);

// Does what can be done. True when the process is gone and the answer queued.
bool run_advance(struct run_job* run, int64_t id, const struct poll_set* set, bool bulk,
                 struct wire* wire);

// Asks whether the process has ended; after a SIGCHLD.
void run_look(struct run_job* run);

// Kills the process group; the answer will be the error `verdict`.
void run_kill(struct run_job* run, const char* verdict);

#endif
