// The machine-wide part of a sample: memory, swap, pressure, CPU time, load.

#ifndef BR_MACHINE_H_
#define BR_MACHINE_H_

#include <stdint.h>

#include "columns.h"

// Files of /proc that stay open, -1 where this kernel has none.
struct machine {
  int stat_fd;
  int meminfo_fd;
  int vmstat_fd;
  int loadavg_fd;
  int pressure_cpu_fd;
  int pressure_memory_fd;
  int pressure_io_fd;
  int64_t oom_kills;  // since boot, as of the last measurement; MISSING = not known
};

void machine_open(struct machine* machine);
void machine_close(struct machine* machine);

// Fills the machine's cells. What cannot be read stays MISSING.
void machine_measure(struct machine* machine, struct sample* sample);

#endif
