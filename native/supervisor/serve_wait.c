#define _GNU_SOURCE
#include "serve_wait.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "inspect.h"
#include "json.h"
#include "run_folder.h"

// Where the kernel cannot tell when another process ends (before 5.3).
static const int64_t kLookAgainNs = 10 * NS_PER_MS;

static int open_pidfd(pid_t pid) {
#if defined(SYS_pidfd_open) && !defined(BR_TEST_WITHOUT_PIDFD)
  return (int)syscall(SYS_pidfd_open, pid, 0);
#else
  (void)pid;
  return -1;
#endif
}

void wait_begin(struct wait_job* job, const struct demand* demand, const struct host* host) {
  *job = (struct wait_job){.host = host, .supervisor = -1, .slot = -1, .limit_ns = INT64_MAX};
  job->run_dir = checked_strdup(demand->path);
  if (demand->timeout_ns >= 0) {
    job->limit_ns = clock_monotonic_ns() + demand->timeout_ns;
  }
}

static void forget_supervisor(struct wait_job* job) {
  if (job->supervisor >= 0) {
    close(job->supervisor);
  }
  job->supervisor = -1;
}

void wait_free(struct wait_job* job) {
  forget_supervisor(job);
  free(job->run_dir);
}

void wait_watch(struct wait_job* job, struct poll_set* set) {
  job->slot = poll_watch(set, job->supervisor, POLLIN);
  if (job->slot < 0) {
    poll_wake_by(set, job->look_ns);
  }
  poll_wake_by(set, job->limit_ns);
}

static void answer_state(const struct inspection* i, const struct run_folder* folder, int64_t id,
                         struct wire* wire) {
  static const char* const kNames[] = {"absent", "running", "finished", "lost"};
  struct text answer = {0};
  answer_open(&answer, id);
  json_add_string(&answer, "state", kNames[i->state]);
  if (i->state == RUN_LOST) {
    json_add_string(&answer, "reason", i->reason);
  }
  const bool exists = i->state != RUN_ABSENT;
  json_add_int(&answer, "stdout_size",
               exists ? folder_file_size(folder, STDOUT_FILE) : JSON_UNKNOWN);
  json_add_int(&answer, "stderr_size",
               exists ? folder_file_size(folder, STDERR_FILE) : JSON_UNKNOWN);
  const size_t length = i->state == RUN_FINISHED ? i->status.length : 0;
  json_add_int(&answer, "bytes", (int64_t)length);
  answer_send(wire, &answer);
  wire_append(wire, i->status.data, length);
}

// Watches the supervisor of a run that was just seen running. True when it must be looked at
// again at once: it ended before it could be watched.
static bool watch_supervisor(struct wait_job* job, struct process_id supervisor) {
  forget_supervisor(job);
  job->look_ns = clock_monotonic_ns() + kLookAgainNs;
  job->supervisor = open_pidfd(supervisor.pid);
  if (process_is_alive(supervisor)) {
    return false;
  }
  forget_supervisor(job);
  return true;
}

// One look at the folder. True when the answer is queued.
static bool look(struct wait_job* job, int64_t id, bool must_answer, bool* again,
                 struct wire* wire) {
  struct run_folder folder;
  struct inspection i = {.state = RUN_ABSENT};
  const int error = folder_open(&folder, job->run_dir);
  if (error != 0 && error != ENOENT && error != ENOTDIR) {
    answer_error(wire, id, "os", strerror(error));
    return true;
  }
  if (error == 0) {
    inspect_run(&folder, job->host, &i);
  }
  const bool done = i.state != RUN_RUNNING || must_answer;
  if (done) {
    answer_state(&i, &folder, id, wire);
  }
  *again = !done && watch_supervisor(job, i.command.supervisor);
  inspection_free(&i);
  folder_close(&folder);
  return done;
}

bool wait_advance(struct wait_job* job, int64_t id, const struct poll_set* set,
                  struct wire* wire) {
  const int64_t now_ns = clock_monotonic_ns();
  const bool over = now_ns >= job->limit_ns;
  const bool ended = poll_is_ready(set, job->slot);
  const bool blind = job->supervisor < 0 && now_ns >= job->look_ns;
  if (!over && !ended && !blind) {
    return false;
  }
  bool again = false;
  bool done = look(job, id, over, &again, wire);
  if (!done && again) {
    done = look(job, id, over, &again, wire);
  }
  return done;
}
