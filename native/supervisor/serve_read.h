// A file that `serve` sends, part by part, and the size of one.

#ifndef BR_SERVE_READ_H_
#define BR_SERVE_READ_H_

#include <stdbool.h>
#include <stdint.h>

#include "serve_poll.h"
#include "serve_requests.h"
#include "serve_wire.h"

struct read_job {
  int fd;
  int64_t left;  // how much was asked for; < 0 = all of it
};

// False when it cannot be read; the answer is queued then.
bool read_begin(struct read_job* job, const struct demand* demand, struct wire* wire);
void read_free(struct read_job* job);

void read_watch(const struct read_job* job, struct poll_set* set, bool bulk);

// Queues the next part. True when it was the last one.
bool read_advance(struct read_job* job, int64_t id, bool bulk, struct wire* wire);

void answer_size(const struct demand* demand, struct wire* wire);

#endif
