// The command line.

#ifndef BR_OPTIONS_H_
#define BR_OPTIONS_H_

#include <getopt.h>
#include <stddef.h>
#include <stdint.h>

#include "lease.h"
#include "pack.h"
#include "request.h"

enum verb {
  VERB_START,
  VERB_STATE,
  VERB_STOP,
  VERB_DU,
  VERB_FRESH,
  VERB_REMOVE,
  VERB_PACK,
  VERB_HELP,
  VERB_VERSION,
};

struct options {
  enum verb verb;
  struct request request;     // start; of the others only run_dir and fresh
  struct lease_claim lease;   // start, fresh, remove
  int64_t stop_grace_ns;      // stop; < 0 = not given
  char* const* directories;   // du
  size_t directory_count;
  struct pack_request pack;   // pack
};

// A mistake is explained in one line on stderr and ends the process with EXIT_USAGE.
void options_parse(int argc, char** argv, struct options* out);

// --- For those who read options of their own. ---

__attribute__((format(printf, 1, 2))) _Noreturn void usage_error(const char* format, ...);
// The next option of argv, -1 behind the last one; `family` goes before the verb in argv[0] when a
// mistake is told ("lease "). Set optind to 1 before the first call.
int next_option(int argc, char** argv, const struct option* known, const char* family);
int64_t parse_seconds(const char* option, const char* text, double least);
const char* absolute(const char* path);
const char* not_empty(const char* option, const char* value);
int64_t parse_fence(const char* text);

#endif
