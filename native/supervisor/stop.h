// The command line's `stop`.

#ifndef BR_STOP_H_
#define BR_STOP_H_

#include <stdint.h>

// Ends a run and returns when it has a status.json. grace_ns < 0 = the run's own.
// Returns the exit code.
int stop_command(const char* run_dir, int64_t grace_ns);

#endif
