// Who listens on a TCP port of this host, as far as /proc tells.

#ifndef BR_LISTENER_H_
#define BR_LISTENER_H_

#include <stdbool.h>
#include <sys/types.h>

struct listener {
  pid_t pid;         // 0 = not known: another user's, or in another pid namespace
  char command[32];  // its name, as /proc/PID/comm has it
};

// False when nobody listens.
bool listener_find(int port, struct listener* out);

#endif
