// Starting a command whose streams are pipes of ours: own session, default signals.

#ifndef BR_SERVE_SPAWN_H_
#define BR_SERVE_SPAWN_H_

#include <stdbool.h>
#include <sys/types.h>

#include "serve_requests.h"

struct spawned {
  pid_t pid;      // also of its session and process group
  int status;     // tells a struct spawn_failure, or ends when the command is executed
  int input;      // -1 = stdin is /dev/null
  int output[2];  // stdout, stderr
};

enum spawn_stage { SPAWN_PREPARE = 1, SPAWN_CHANGE_DIRECTORY, SPAWN_EXECUTE };

struct spawn_failure {
  enum spawn_stage stage;  // 0 = none
  int error;
};

// Forks. Our ends of the pipes do not block. Returns 0 or an errno.
int spawn(const struct demand* demand, bool with_input, struct spawned* out);

// Closes all that is open.
void spawned_close(struct spawned* process);
void close_descriptor(int* fd);

// Whether a process other than its leader still lives in the group. The leader may be a zombie.
bool group_has_others(pid_t leader);

#endif
