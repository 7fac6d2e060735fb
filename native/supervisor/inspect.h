// Looking at a run from outside: what its folder and the process table say.

#ifndef BR_INSPECT_H_
#define BR_INSPECT_H_

#include <stdbool.h>

#include "command_file.h"
#include "host.h"
#include "run_folder.h"
#include "text.h"

enum run_state {
  RUN_ABSENT,    // nothing was started here
  RUN_RUNNING,   // its supervisor lives
  RUN_FINISHED,  // there is a status.json
  RUN_LOST,      // neither
};

struct inspection {
  enum run_state state;
  struct recorded_command command;  // empty when absent or unreadable
  struct process_id child;          // pid 0 = not known
  struct text status;               // status.json, when finished
  const char* reason;               // when lost
  bool rebooted;                    // lost, and nothing of it can be left
  bool elsewhere;                   // started on another host: cannot be judged here
};

void inspect_run(const struct run_folder* folder, const struct host* host,
                 struct inspection* out);
void inspection_free(struct inspection* inspection);

// The line that the command line prints.
void inspection_format(const struct inspection* inspection, const struct run_folder* folder,
                       struct text* out);

// The command line's `state`. Returns the exit code.
int state_command(const char* run_dir);

#endif
