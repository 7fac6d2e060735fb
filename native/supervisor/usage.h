// What a process tree has used: living processes plus those that have ended.

#ifndef BR_USAGE_H_
#define BR_USAGE_H_

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "columns.h"
#include "switches.h"
#include "tree.h"

enum io_counter {
  IO_READ_CHARS,
  IO_WRITE_CHARS,
  IO_READ_CALLS,
  IO_WRITE_CALLS,
  IO_READ_BYTES,
  IO_WRITE_BYTES,
  IO_CANCELLED_WRITE_BYTES,
  IO_COUNTERS
};

// Everything this process has waited for, each with all that it had waited for itself.
struct reaped {
  int64_t user_us, system_us;
  int64_t max_rss_kib;  // of the largest process
  int64_t minor_faults, major_faults;
  int64_t blocks_in, blocks_out;
  int64_t voluntary_switches, involuntary_switches;
  int64_t io[IO_COUNTERS];
  bool io_unreadable;  // the kernel does not count
};

struct usage {
  int own_io_fd;
  struct reaped reaped;
  struct switches switches;
  int64_t highest[COLUMN_COUNT];  // what a counter has shown so far; MISSING = nothing
};

void usage_init(struct usage* usage);
void usage_free(struct usage* usage);

// Waits for an ended child of this process and adds what it has used.
// Returns its wait status.
int usage_reap(struct usage* usage, pid_t pid);

// Updates the tree and fills its cells. Counters never fall from one sample to the next.
void usage_measure(struct usage* usage, struct tree* tree, struct sample* sample);

// The best knowledge of an io total once everything has ended; MISSING if there is none.
int64_t usage_io_total(const struct usage* usage, enum io_counter counter);

#endif
