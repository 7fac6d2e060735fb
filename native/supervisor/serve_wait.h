// Waiting for the end of a supervised run, which is nobody's child here.

#ifndef BR_SERVE_WAIT_H_
#define BR_SERVE_WAIT_H_

#include <stdbool.h>
#include <stdint.h>

#include "host.h"
#include "serve_poll.h"
#include "serve_requests.h"
#include "serve_wire.h"

struct wait_job {
  char* run_dir;
  const struct host* host;
  int supervisor, slot;  // pidfd; -1 = look again and again
  int64_t look_ns;       // monotonic: when to look next without one
  int64_t limit_ns;      // monotonic; INT64_MAX = none
};

void wait_begin(struct wait_job* job, const struct demand* demand, const struct host* host);
void wait_free(struct wait_job* job);

void wait_watch(struct wait_job* job, struct poll_set* set);

// Looks when there is a reason to. True when the answer is queued.
bool wait_advance(struct wait_job* job, int64_t id, const struct poll_set* set,
                  struct wire* wire);

#endif
