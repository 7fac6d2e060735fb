#define _GNU_SOURCE
#include "stop.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "front.h"
#include "inspect.h"
#include "orphans.h"
#include "process.h"
#include "run_folder.h"
#include "status.h"

static const int64_t kLookAgainNs = 5 * NS_PER_MS;

struct stopping {
  struct run_folder folder;
  struct host host;
  struct inspection inspection;
  int64_t grace_ns;
};

static int complain(const char* what, int error) {
  fprintf(stderr, "br-supervise: %s: %s\n", what, strerror(error));
  return EXIT_TROUBLE;
}

static void look(struct stopping* s) {
  inspection_free(&s->inspection);
  inspect_run(&s->folder, &s->host, &s->inspection);
}

// Returns 0 or an errno.
static int end_running(struct stopping* s) {
  const struct process_id supervisor = s->inspection.command.supervisor;
  int error;
  if (s->grace_ns < 0) {
    error = process_signal(supervisor, SIGTERM);
  } else {
    error = process_signal_with_value(supervisor, SIGTERM, (int)(s->grace_ns / NS_PER_MS));
  }
  if (error != 0 && error != ESRCH) {
    return error;
  }
  process_signal(supervisor, SIGCONT);  // should someone have stopped it
  while (process_is_alive(supervisor)) {
    clock_sleep_ns(kLookAgainNs);
  }
  return 0;
}

// Returns 0 or an errno.
static int end_lost(struct stopping* s) {
  const struct recorded_command* command = &s->inspection.command;
  struct status status;
  status_init(&status, "lost", text_string(&command->boot_id));
  status.error = s->inspection.reason;
  status.started_unix_ns = command->started_unix_ns;
  status.leftover_processes = 0;
  if (!s->inspection.rebooted && command->supervisor.pid != 0) {
    status.leftover_processes =
        orphans_end(command, s->grace_ns < 0 ? command->grace_ns : s->grace_ns);
  }
  struct text t = {0};
  status_format(&status, &t);
  const int error = folder_publish(&s->folder, STATUS_RESERVE_FILE, STATUS_FILE, &t, true);
  text_free(&t);
  return error == EEXIST ? 0 : error;
}

static int stop_as_inspected(struct stopping* s) {
  look(s);
  if (s->inspection.state == RUN_RUNNING) {
    const int error = end_running(s);
    if (error != 0) {
      return complain("cannot stop the supervisor", error);
    }
    look(s);
  }
  if (s->inspection.elsewhere) {
    fprintf(stderr, "br-supervise: the run was started on another host: run stop on %s\n",
            text_string(&s->inspection.command.hostname));
    return EXIT_TROUBLE;
  }
  if (s->inspection.state == RUN_LOST) {
    const int error = end_lost(s);
    if (error != 0) {
      return complain("cannot write " STATUS_FILE, error);
    }
    look(s);
  }
  struct text line = {0};
  inspection_format(&s->inspection, &s->folder, &line);
  puts(line.data);
  text_free(&line);
  return EXIT_OK;
}

int stop_command(const char* run_dir, int64_t grace_ns) {
  struct stopping s = {.grace_ns = grace_ns};
  int error = folder_open(&s.folder, run_dir);
  if (error == ENOENT) {
    return state_command(run_dir);
  }
  if (error == 0) {
    error = folder_lock(&s.folder);
  }
  if (error != 0) {
    return complain("cannot use the run folder", error);
  }
  host_read(&s.host);
  const int exit_code = stop_as_inspected(&s);
  inspection_free(&s.inspection);
  folder_close(&s.folder);
  return exit_code;
}
