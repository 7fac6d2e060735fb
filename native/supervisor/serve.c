#define _GNU_SOURCE
#include "serve.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "front.h"
#include "host.h"
#include "json.h"
#include "serve_poll.h"
#include "serve_read.h"
#include "serve_requests.h"
#include "serve_run.h"
#include "serve_wait.h"
#include "serve_wire.h"
#include "version.h"

enum { PROTOCOL = 1, MOST_JOBS = 200 };

// Output is only read while less than the first waits to be written, so that other answers
// have little to wait for; requests only while less than the second does.
static const size_t kBulkQueue = (size_t)1 << 20;
static const size_t kFullQueue = (size_t)8 << 20;

static const int64_t kFarewellNs = 2 * NS_PER_SECOND;

// A request that is under way.
struct job {
  int64_t id;
  enum demand_kind kind;
  union {
    struct run_job run;
    struct read_job read;
    struct wait_job wait;
  };
};

struct server {
  struct wire wire;
  struct poll_set set;
  struct host host;
  struct job jobs[MOST_JOBS];
  size_t job_count;
  int signals, signals_slot, in_slot, out_slot;
  bool over;
  int exit_code;
};

// --- Jobs, of whatever kind. ---

static void job_free(struct job* job) {
  if (job->kind == DEMAND_RUN) {
    run_free(&job->run);
  } else if (job->kind == DEMAND_READ) {
    read_free(&job->read);
  } else {
    wait_free(&job->wait);
  }
}

static void job_watch(struct job* job, struct poll_set* set, bool bulk) {
  if (job->kind == DEMAND_RUN) {
    run_watch(&job->run, set, bulk);
  } else if (job->kind == DEMAND_READ) {
    read_watch(&job->read, set, bulk);
  } else {
    wait_watch(&job->wait, set);
  }
}

// True when it is over and answered.
static bool job_advance(struct job* job, struct server* s) {
  const bool bulk = wire_queued(&s->wire) < kBulkQueue;
  if (job->kind == DEMAND_RUN) {
    return run_advance(&job->run, job->id, &s->set, bulk, &s->wire);
  }
  if (job->kind == DEMAND_READ) {
    return read_advance(&job->read, job->id, bulk, &s->wire);
  }
  return wait_advance(&job->wait, job->id, &s->set, &s->wire);
}

static void remove_job(struct server* s, size_t index) {
  job_free(&s->jobs[index]);
  s->jobs[index] = s->jobs[--s->job_count];
}

// An answered run whose process will not die holds its place but not its id.
static struct job* find_job(struct server* s, int64_t id) {
  for (size_t i = 0; i < s->job_count; i++) {
    struct job* job = &s->jobs[i];
    if (job->id == id && !(job->kind == DEMAND_RUN && job->run.answered)) {
      return job;
    }
  }
  return NULL;
}

// --- Requests. ---

static void complain(struct server* s, const char* problem) {
  answer_error(&s->wire, -1, "protocol", problem);
  s->over = true;
  s->exit_code = EXIT_USAGE;
}

static void begin_job(struct server* s, const struct demand* demand, const struct frame* frame) {
  if (s->job_count == MOST_JOBS) {
    answer_error(&s->wire, demand->id, "limit", "too many requests at once");
    return;
  }
  struct job* job = &s->jobs[s->job_count];
  job->id = demand->id;
  job->kind = demand->kind;
  bool begun = true;
  if (demand->kind == DEMAND_RUN) {
    begun = run_begin(&job->run, demand, frame, &s->wire);
  } else if (demand->kind == DEMAND_READ) {
    begun = read_begin(&job->read, demand, &s->wire);
  } else {
    wait_begin(&job->wait, demand, &s->host);
  }
  if (begun) {
    s->job_count++;
    if (job_advance(job, s)) {  // most reads and many waits are done with this
      remove_job(s, s->job_count - 1);
    }
  }
}

static void cancel(struct server* s, const struct demand* demand) {
  struct job* job = find_job(s, demand->target);
  struct text answer = {0};
  answer_open(&answer, demand->id);
  json_add_bool(&answer, "cancelled", job != NULL);
  answer_send(&s->wire, &answer);
  if (job != NULL && job->kind == DEMAND_RUN) {
    run_kill(&job->run, "cancelled");  // answered when it is dead
  } else if (job != NULL) {
    answer_error(&s->wire, job->id, "cancelled", NULL);
    remove_job(s, (size_t)(job - s->jobs));
  }
}

static void obey(struct server* s, const struct frame* frame) {
  struct demand demand;
  const char* problem = demand_read(frame->line, &demand);
  if (problem == NULL && find_job(s, demand.id) != NULL) {
    problem = "two requests at once have the same id";
  }
  if (problem != NULL) {
    complain(s, problem);
  } else if (demand.kind == DEMAND_SIZE) {
    answer_size(&demand, &s->wire);
  } else if (demand.kind == DEMAND_CANCEL) {
    cancel(s, &demand);
  } else {
    begin_job(s, &demand, frame);
  }
  demand_free(&demand);
}

static size_t held_input(const struct server* s) {
  size_t held = 0;
  for (size_t i = 0; i < s->job_count; i++) {
    held += s->jobs[i].kind == DEMAND_RUN ? s->jobs[i].run.input.length : 0;
  }
  return held;
}

static bool takes_requests(const struct server* s) {
  return wire_queued(&s->wire) < kFullQueue && held_input(s) < WIRE_MOST_INPUT_BYTES;
}

static void obey_all(struct server* s) {
  struct frame frame;
  const char* problem;
  enum frame_arrival arrival = FRAME_COMPLETE;
  while (!s->over && (takes_requests(s) || s->wire.in_ended) && arrival == FRAME_COMPLETE) {
    arrival = wire_next(&s->wire, &frame, &problem);
    if (arrival == FRAME_COMPLETE) {
      obey(s, &frame);
    } else if (arrival == FRAME_BAD) {
      complain(s, problem);
    }
  }
}

// --- The loop. ---

static int open_signals(void) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  sigprocmask(SIG_BLOCK, &signals, NULL);
  signal(SIGCHLD, SIG_DFL);  // where it is ignored, nothing can be waited for
  signal(SIGPIPE, SIG_IGN);
  return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void greet(struct server* s) {
  struct text greeting = {0};
  json_open(&greeting, NULL, '{');
  json_add_int(&greeting, "serve", PROTOCOL);
  json_add_string(&greeting, "version", BR_VERSION);
  json_add_string(&greeting, "boot_id", s->host.boot_id);
  json_add_int(&greeting, "pid", getpid());
  answer_send(&s->wire, &greeting);
}

static void watch(struct server* s) {
  poll_clear(&s->set);
  s->signals_slot = poll_watch(&s->set, s->signals, POLLIN);
  s->in_slot = poll_watch(&s->set, STDIN_FILENO, takes_requests(s) ? POLLIN : 0);
  s->out_slot = poll_watch(&s->set, wire_queued(&s->wire) > 0 ? STDOUT_FILENO : -1, POLLOUT);
  const bool bulk = wire_queued(&s->wire) < kBulkQueue;
  for (size_t i = 0; i < s->job_count; i++) {
    job_watch(&s->jobs[i], &s->set, bulk);
  }
}

static void take_signals(struct server* s) {
  struct signalfd_siginfo info;
  bool child_ended = false;
  while (read(s->signals, &info, sizeof info) == (ssize_t)sizeof info) {
    child_ended = child_ended || info.ssi_signo == SIGCHLD;
    s->over = s->over || info.ssi_signo != SIGCHLD;
  }
  for (size_t i = 0; child_ended && i < s->job_count; i++) {
    if (s->jobs[i].kind == DEMAND_RUN) {
      run_look(&s->jobs[i].run);
    }
  }
}

static void advance_all(struct server* s) {
  for (size_t i = 0; i < s->job_count;) {
    if (job_advance(&s->jobs[i], s)) {
      remove_job(s, i);
    } else {
      i++;
    }
  }
}

static void turn(struct server* s) {
  watch(s);
  poll_wait(&s->set);
  if (poll_is_ready(&s->set, s->signals_slot)) {
    take_signals(s);
  }
  advance_all(s);
  if (poll_is_ready(&s->set, s->in_slot)) {
    if (takes_requests(s)) {
      wire_receive(&s->wire);
    } else if (s->set.entries[s->in_slot].revents & (POLLHUP | POLLERR)) {
      s->wire.in_ended = true;
    }
  }
  obey_all(s);
  wire_flush(&s->wire);
  s->over = s->over || s->wire.in_ended || s->wire.out_broken;
}

// --- The end. ---

static void kill_all(struct server* s) {
  for (size_t i = 0; i < s->job_count; i++) {
    if (s->jobs[i].kind == DEMAND_RUN) {
      run_kill(&s->jobs[i].run, "cancelled");
    }
  }
}

static void reap(struct server* s, int64_t limit_ns) {
  for (size_t i = 0; i < s->job_count; i++) {
    while (s->jobs[i].kind == DEMAND_RUN &&
           waitpid(s->jobs[i].run.process.pid, NULL, WNOHANG) == 0 &&
           clock_monotonic_ns() < limit_ns) {
      clock_sleep_ns(NS_PER_MS);
    }
  }
}

// Commands die first: the client may be too slow, or gone.
static void take_leave(struct server* s) {
  const int64_t limit_ns = clock_monotonic_ns() + kFarewellNs;
  kill_all(s);
  reap(s, limit_ns);
  while (wire_queued(&s->wire) > 0 && !s->wire.out_broken && clock_monotonic_ns() < limit_ns) {
    poll_clear(&s->set);
    poll_watch(&s->set, STDOUT_FILENO, POLLOUT);
    poll_wake_by(&s->set, limit_ns);
    poll_wait(&s->set);
    wire_flush(&s->wire);
  }
  while (s->job_count > 0) {
    remove_job(s, s->job_count - 1);
  }
  wire_free(&s->wire);
}

int serve_command(void) {
  struct server s = {.exit_code = EXIT_OK};
  s.signals = open_signals();
  if (s.signals < 0) {
    perror("br-supervise: serve: cannot receive signals");
    return EXIT_TROUBLE;
  }
  host_read(&s.host);
  wire_init(&s.wire);
  greet(&s);
  wire_flush(&s.wire);
  while (!s.over) {
    turn(&s);
  }
  take_leave(&s);
  close(s.signals);
  return s.exit_code;
}
