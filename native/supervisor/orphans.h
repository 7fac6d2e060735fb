// Processes of a run whose supervisor was killed, found by their environment.

#ifndef BR_ORPHANS_H_
#define BR_ORPHANS_H_

#include <stdint.h>

#include "command_file.h"

// Ends them, with SIGTERM, grace and SIGKILL, until none is left. Returns how many
// there were at first.
int64_t orphans_end(const struct recorded_command* command, int64_t grace_ns);

#endif
