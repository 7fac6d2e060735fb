// One run from its claim on the run folder to its status.json, in this process.

#ifndef BR_SUPERVISE_H_
#define BR_SUPERVISE_H_

#include "front.h"
#include "request.h"

// Tells the front as soon as the command is executed or cannot be. Returns the exit code
// of the supervisor: EXIT_OK when the run has left a status.json, whatever it says.
int supervise(const struct request* request, struct front* front);

#endif
