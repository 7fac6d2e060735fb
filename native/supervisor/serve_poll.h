// What one turn of the request loop waits for: descriptors, and a moment.

#ifndef BR_SERVE_POLL_H_
#define BR_SERVE_POLL_H_

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { POLL_MOST = 1024 };

struct poll_set {
  struct pollfd entries[POLL_MOST];
  size_t count;
  int64_t wake_ns;  // monotonic
};

void poll_clear(struct poll_set* set);

// Returns the slot to ask poll_is_ready() about; -1 (never ready) when fd is -1.
int poll_watch(struct poll_set* set, int fd, short events);
bool poll_is_ready(const struct poll_set* set, int slot);

// Wakes up no later than then.
void poll_wake_by(struct poll_set* set, int64_t monotonic_ns);

void poll_wait(struct poll_set* set);

#endif
