// What one run is asked to be, as the command line said it. Paths are absolute.

#ifndef BR_REQUEST_H_
#define BR_REQUEST_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ours.h"
#include "pack.h"

// In the environment of the command, so that its processes are found again after the
// supervisor was killed.
#define RUN_ID_VARIABLE "BENCHRUNNER_RUN_ID"
#define RUN_DIR_VARIABLE "BENCHRUNNER_RUN_DIR"

struct request {
  const char* run_dir;
  const char* run_id;
  char* const* argv;            // NULL-terminated
  const char* const* env;       // NAME=VALUE, NULL-terminated; the last one of a name counts
  bool clear_env;
  const char* cwd;
  const char* const* du_directories;
  size_t du_count;
  const char* device_directory;  // NULL = no device columns
  int64_t timeout_ns;            // 0 = no limit
  int64_t grace_ns;
  int64_t interval_ns;
  bool foreground;
  int64_t await_ns;              // how long `start` stays to see a short run's end
  const struct pack_request* pack;  // sent along with that end; NULL = nothing is
  struct our_folders fresh;      // made empty first; none = nothing is
};

// The environment of the command, NULL-terminated.
char** environment_create(const struct request* request);
void environment_free(char** environment);

#endif
