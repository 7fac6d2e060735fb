// The command line.

#ifndef BR_OPTIONS_H_
#define BR_OPTIONS_H_

#include <stddef.h>
#include <stdint.h>

#include "request.h"

enum verb {
  VERB_START,
  VERB_STATE,
  VERB_STOP,
  VERB_DU,
  VERB_FRESH,
  VERB_REMOVE,
  VERB_HELP,
  VERB_VERSION,
};

struct options {
  enum verb verb;
  struct request request;     // start; of the others only run_dir and fresh
  int64_t stop_grace_ns;      // stop; < 0 = not given
  char* const* directories;   // du
  size_t directory_count;
};

// A mistake is explained in one line on stderr and ends the process with EXIT_USAGE.
void options_parse(int argc, char** argv, struct options* out);

#endif
