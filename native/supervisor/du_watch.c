#include <errno.h>

#include "clock.h"
#include "columns.h"
#include "du.h"

// Walking may take this part of the time: 1 %.
static const int64_t kPauseAfterWalk = 100;

// The sum over all directories; MISSING when none exists or the walk was interrupted.
static int64_t walk_all(const struct du_watch* watch) {
  struct du du;
  du_begin(&du, watch->count > 1);
  du.interrupt = watch->interrupt;
  du.context = watch->context;
  int64_t total = MISSING;
  for (size_t i = 0; i < watch->count; i++) {
    int64_t kib;
    if (du_directory(&du, watch->directories[i], &kib) == 0) {
      total = total == MISSING ? kib : total + kib;
    }
  }
  if (du.interrupted) {
    total = MISSING;
  }
  du_end(&du);
  return total;
}

static int64_t walk_and_note(struct du_watch* watch) {
  const int64_t begin = clock_monotonic_ns();
  const int64_t total = walk_all(watch);
  const int64_t end = clock_monotonic_ns();
  watch->not_before_ns = end + kPauseAfterWalk * (end - begin);
  watch->peak = total > watch->peak ? total : watch->peak;  // MISSING is below all numbers
  return total;
}

void du_watch_begin(struct du_watch* watch) {
  watch->peak = watch->after = MISSING;
  watch->before = walk_and_note(watch);
}

int64_t du_watch_sample(struct du_watch* watch) {
  if (watch->count == 0 || clock_monotonic_ns() < watch->not_before_ns) {
    return MISSING;
  }
  return walk_and_note(watch);
}

void du_watch_end(struct du_watch* watch) { watch->after = walk_and_note(watch); }
