#define _GNU_SOURCE
#include "orphans.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "files.h"
#include "process.h"
#include "request.h"
#include "text.h"

static const int64_t kLookAgainNs = 20 * NS_PER_MS;

struct marks {
  struct text run_id, run_dir;  // NAME=VALUE
};

static bool has_entry(const struct text* environment, const char* entry) {
  const char* end = environment->data + environment->length;
  for (const char* p = environment->data; p < end; p += strlen(p) + 1) {
    if (strcmp(p, entry) == 0) {
      return true;
    }
  }
  return false;
}

// Both marks: a caller may give the same run id to several runs.
static bool is_marked(pid_t pid, const struct marks* marks) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
  struct text environment = {0};
  const bool marked = read_whole_file(AT_FDCWD, path, &environment) == 0 &&
                      environment.length > 0 &&
                      has_entry(&environment, marks->run_id.data) &&
                      has_entry(&environment, marks->run_dir.data);
  text_free(&environment);
  return marked;
}

// `since`: start time of the supervisor, which is older than all that it started.
static bool is_orphan(pid_t pid, const struct marks* marks, uint64_t since,
                      struct process_id* id) {
  struct process_stat stat;
  if (pid == getpid() || !process_read_stat(pid, &stat) || stat.state == 'Z' ||
      stat.id.start_time < since || !is_marked(pid, marks)) {
    return false;
  }
  *id = stat.id;
  return true;
}

// Returns how many there are.
static int64_t signal_orphans(const struct marks* marks, uint64_t since, int signal) {
  DIR* proc = opendir("/proc");
  if (proc == NULL) {
    return 0;
  }
  int64_t found = 0;
  const struct dirent* entry;
  while ((entry = readdir(proc)) != NULL) {
    struct process_id id;
    if (isdigit((unsigned char)entry->d_name[0]) &&
        is_orphan(atoi(entry->d_name), marks, since, &id)) {
      found++;
      process_signal(id, signal);
    }
  }
  closedir(proc);
  return found;
}

int64_t orphans_end(const struct recorded_command* command, int64_t grace_ns) {
  struct marks marks = {0};
  text_printf(&marks.run_id, "%s=%s", RUN_ID_VARIABLE, text_string(&command->run_id));
  text_printf(&marks.run_dir, "%s=%s", RUN_DIR_VARIABLE, text_string(&command->run_dir));
  const uint64_t since = command->supervisor.start_time;

  const int64_t found = signal_orphans(&marks, since, SIGTERM);
  int64_t alive = signal_orphans(&marks, since, SIGCONT);  // a stopped one sees SIGTERM then
  const int64_t kill_at = clock_monotonic_ns() + grace_ns;
  while (alive > 0) {
    clock_sleep_ns(kLookAgainNs);
    alive = signal_orphans(&marks, since, clock_monotonic_ns() < kill_at ? 0 : SIGKILL);
  }
  text_free(&marks.run_id);
  text_free(&marks.run_dir);
  return found;
}
