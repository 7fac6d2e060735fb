#define _GNU_SOURCE
#include "control.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"

// Helpers that end on their own right after the command are not leftovers.
static const int64_t kSettleNs = 200 * NS_PER_MS;
static const int64_t kLeftoverGraceNs = 2 * NS_PER_SECOND;
static const int64_t kFirstKillPauseNs = 20 * NS_PER_MS;
static const int64_t kLongestKillPauseNs = 500 * NS_PER_MS;

static int64_t min_ns(int64_t a, int64_t b) { return a < b ? a : b; }

void control_init(struct control* s, int64_t timeout_ns, int64_t grace_ns) {
  *s = (struct control){
      .state = "exited", .timeout_ns = timeout_ns, .grace_ns = grace_ns, .wall_us = MISSING};
  tree_init(&s->tree);
  prctl(PR_SET_CHILD_SUBREAPER, 1L);
  sigemptyset(&s->signals);
  sigaddset(&s->signals, SIGCHLD);
  sigaddset(&s->signals, SIGTERM);
  sigaddset(&s->signals, SIGINT);
  sigprocmask(SIG_BLOCK, &s->signals, NULL);
  signal(SIGCHLD, SIG_DFL);  // where it is ignored, nothing can be waited for
  signal(SIGHUP, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
}

bool control_has_news(void* control) {
  const struct control* s = control;
  sigset_t pending;
  sigpending(&pending);
  if (sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1) {
    return true;
  }
  siginfo_t ended = {0};
  return s->child.id.pid != 0 && !s->child_ended &&
         waitid(P_PID, (id_t)s->child.id.pid, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         ended.si_pid != 0;
}

// --- Ending the tree. ---

static void terminate(struct control* s, int64_t grace_ns) {
  const size_t alive = tree_signal(&s->tree, SIGTERM);
  tree_signal(&s->tree, SIGCONT);  // a stopped process would not see it
  log_line("sent SIGTERM to %zu processes", alive);
  if (s->child_ended) {
    s->leftover_processes = (int64_t)alive;
  }
  s->phase = PHASE_TERMINATING;
  s->phase_end_ns = clock_monotonic_ns() + grace_ns;
}

static void kill_all(struct control* s) {
  const int64_t alive = (int64_t)tree_signal(&s->tree, SIGKILL);
  if (s->phase != PHASE_KILLING) {
    s->phase = PHASE_KILLING;
    s->kill_pause_ns = kFirstKillPauseNs;
    log_line("sent SIGKILL to %d processes", (int)alive);
  } else if (s->kill_pause_ns < kLongestKillPauseNs) {
    s->kill_pause_ns *= 2;
    if (s->kill_pause_ns >= kLongestKillPauseNs) {
      log_line("%d processes do not die; trying until they do", (int)alive);
    }
  }
  if (s->child_ended && alive > s->leftover_processes) {
    s->leftover_processes = alive;
  }
  s->phase_end_ns = clock_monotonic_ns() + s->kill_pause_ns;
}

static void end_phase(struct control* s) {
  switch (s->phase) {
    case PHASE_RUNNING:
      log_line("the time limit is over");
      s->state = "timeout";
      terminate(s, s->grace_ns);
      break;
    case PHASE_SETTLING:
      log_line("the command has left processes behind");
      terminate(s, min_ns(s->grace_ns, kLeftoverGraceNs));
      break;
    case PHASE_TERMINATING:
    case PHASE_KILLING:
      kill_all(s);
      break;
  }
}

static void stop(struct control* s, int64_t grace_ns) {
  const int64_t now = clock_monotonic_ns();
  switch (s->phase) {
    case PHASE_RUNNING:
      log_line("asked to stop");
      s->state = "killed";
      terminate(s, grace_ns);
      break;
    case PHASE_SETTLING:
      s->phase_end_ns = now;
      break;
    case PHASE_TERMINATING:
      s->phase_end_ns = min_ns(s->phase_end_ns, now + grace_ns);
      break;
    case PHASE_KILLING:
      break;
  }
}

// --- Noticing what ends. ---

static void note_child_end(struct control* s) {
  s->wall_us = (clock_monotonic_ns() - s->begin_ns) / NS_PER_US;
  s->ended_unix_ns = clock_unix_ns();
  s->child_ended = true;
}

static void after_child_end(struct control* s, int wait_status) {
  s->wait_status = wait_status;
  measuring_take(s->measuring, &s->tree);
  if (s->phase == PHASE_RUNNING) {
    s->phase = PHASE_SETTLING;
    s->phase_end_ns = clock_monotonic_ns() + kSettleNs;
  }
}

static void reap_ended(struct control* s) {
  for (;;) {
    siginfo_t ended = {0};
    if (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) != 0) {
      s->tree_ended = errno == ECHILD;  // for a subreaper that is all descendants
      return;
    }
    if (ended.si_pid == 0) {
      return;
    }
    const bool is_child = !s->child_ended && ended.si_pid == s->child.id.pid;
    if (is_child) {
      note_child_end(s);  // before anything else takes time
    }
    const int wait_status = usage_reap(&s->measuring->usage, ended.si_pid);
    if (is_child) {
      after_child_end(s, wait_status);
    }
  }
}

// Sleeps until something ends, a stop is asked for, or the time has come. Returns the
// grace period of the stop that was asked for, or -1.
static int64_t wait_for_news(struct control* s) {
  int64_t wake = s->phase_end_ns;
  if (!s->child_ended) {
    wake = min_ns(wake, s->measuring->due_ns);
  }
  const int64_t now = clock_monotonic_ns();
  const struct timespec pause = clock_timespec(wake > now ? wake - now : 0);
  siginfo_t info = {0};
  const int signal = sigtimedwait(&s->signals, &info, &pause);
  if (signal != SIGTERM && signal != SIGINT) {
    return -1;
  }
  const bool has_own_grace = signal == SIGTERM && info.si_code == SI_QUEUE;
  return has_own_grace ? info.si_value.sival_int * NS_PER_MS : s->grace_ns;
}

void control_run_to_end(struct control* s, struct measuring* measuring) {
  s->measuring = measuring;
  s->phase_end_ns = s->timeout_ns == 0 ? INT64_MAX : s->begin_ns + s->timeout_ns;
  measuring_begin(measuring, s->begin_ns, &s->tree);
  while (!s->tree_ended) {
    const int64_t stop_grace_ns = wait_for_news(s);
    reap_ended(s);  // first: a command that ended by itself was not stopped
    if (s->tree_ended) {
      break;
    }
    if (stop_grace_ns >= 0) {
      stop(s, stop_grace_ns);
    }
    const int64_t now = clock_monotonic_ns();
    if (!s->child_ended && now >= s->measuring->due_ns) {
      measuring_take(s->measuring, &s->tree);
    }
    if (now >= s->phase_end_ns) {
      end_phase(s);
    }
  }
}

bool control_pause(const struct control* s, int64_t ns) {
  const struct timespec pause = clock_timespec(ns);
  const int signal = sigtimedwait(&s->signals, NULL, &pause);
  return signal != SIGTERM && signal != SIGINT;
}

void control_free(struct control* s) { tree_free(&s->tree); }
