// The command line's `start`.

#ifndef BR_START_H_
#define BR_START_H_

#include "request.h"

// Makes the fresh folders, creates the run folder and supervises the command, in the background or here. May make
// request->run_dir canonical. Returns the exit code.
int start_command(struct request* request);

#endif
