// The command line's `pack`: a run folder as one stream.

#ifndef BR_PACK_H_
#define BR_PACK_H_

#include <stdint.h>

struct pack_request {
  const char* run_dir;
  int64_t limit_bytes;
  const char* newest_in;  // NULL, or a directory of which one more file is sent:
  const char* glob;       // the newest whose name matches
};

// Prints a JSON line that names files with their sizes, then their contents one after
// another. When they are larger than the limit, or not all of them plain files, the line
// says so and nothing follows. Returns the exit code.
int pack_command(const struct pack_request* request);

#endif
