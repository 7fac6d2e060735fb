// Everything that is measured while a command runs.

#ifndef BR_MEASURING_H_
#define BR_MEASURING_H_

#include <stdbool.h>
#include <stdint.h>

#include "device.h"
#include "du.h"
#include "machine.h"
#include "request.h"
#include "run_folder.h"
#include "sampler.h"
#include "status.h"
#include "tree.h"
#include "usage.h"

struct measuring {
  struct usage usage;
  struct machine machine;
  struct device device;
  struct du_watch du;
  struct sampler sampler;
  int64_t interval_ns;
  int64_t begin_ns;  // monotonic
  int64_t due_ns;    // when the next sample is
  int64_t steal_at_begin, steal_now;
  int64_t oom_kills_at_begin;
};

// Opens the samples file and looks at the disk usage before the run.
// `interrupt` ends a walk over the --du directories.
void measuring_open(struct measuring* m, const struct request* request,
                    const struct run_folder* folder, const struct device* device,
                    du_interrupt interrupt, void* context);

// The command started at begin_ns; takes the first sample.
void measuring_begin(struct measuring* m, int64_t begin_ns, struct tree* tree);

// Takes one sample and sets the time of the next.
void measuring_take(struct measuring* m, struct tree* tree);

// The tree has ended: looks at the disk usage a last time and fills what was measured.
void measuring_finish(struct measuring* m, struct status* status);

// Has the kernel killed anything for want of memory? 1, 0 or JSON_UNKNOWN.
int64_t measuring_saw_oom_kill(const struct measuring* m);

void measuring_close(struct measuring* m);

#endif
