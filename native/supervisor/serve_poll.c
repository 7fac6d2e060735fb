#define _GNU_SOURCE
#include "serve_poll.h"

#include "clock.h"

void poll_clear(struct poll_set* set) {
  set->count = 0;
  set->wake_ns = INT64_MAX;
}

int poll_watch(struct poll_set* set, int fd, short events) {
  if (fd < 0 || set->count == POLL_MOST) {
    return -1;
  }
  set->entries[set->count] = (struct pollfd){.fd = fd, .events = events};
  return (int)set->count++;
}

bool poll_is_ready(const struct poll_set* set, int slot) {
  return slot >= 0 && set->entries[slot].revents != 0;
}

void poll_wake_by(struct poll_set* set, int64_t monotonic_ns) {
  if (monotonic_ns < set->wake_ns) {
    set->wake_ns = monotonic_ns;
  }
}

void poll_wait(struct poll_set* set) {
  const int64_t now = clock_monotonic_ns();
  const struct timespec pause = clock_timespec(set->wake_ns > now ? set->wake_ns - now : 0);
  if (ppoll(set->entries, set->count, set->wake_ns == INT64_MAX ? NULL : &pause, NULL) <= 0) {
    for (size_t i = 0; i < set->count; i++) {
      set->entries[i].revents = 0;
    }
  }
}
