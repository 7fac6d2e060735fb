#define _GNU_SOURCE
#include "status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "files.h"

void status_init(struct status* status, const char* state, const char* boot_id) {
  const int64_t none = JSON_UNKNOWN;
  *status = (struct status){
      .state = state, .boot_id = boot_id,
      .exit_code = none, .signal = none, .wall_us = none,
      .started_unix_ns = none, .ended_unix_ns = none,
      .user_us = none, .system_us = none, .max_rss_kib = none,
      .minor_faults = none, .major_faults = none, .blocks_in = none, .blocks_out = none,
      .voluntary_switches = none, .involuntary_switches = none,
      .read_bytes = none, .write_bytes = none, .read_chars = none, .write_chars = none,
      .du_before_kib = none, .du_peak_kib = none, .du_after_kib = none,
      .leftover_processes = none, .oom_killed = none, .steal_ticks = none,
      .supervisor_user_us = none, .supervisor_system_us = none,
      .supervisor_max_rss_kib = none, .samples = none, .samples_lost = none,
  };
}

void status_set_wait_status(struct status* status, int wait_status) {
  if (WIFEXITED(wait_status)) {
    status->exit_code = WEXITSTATUS(wait_status);
  } else if (WIFSIGNALED(wait_status)) {
    status->signal = WTERMSIG(wait_status);
  }
}

// Not ru_maxrss: a process inherits that from the one which executed it.
static int64_t read_max_rss_kib(void) {
  char text[4096];
  if (read_file("/proc/self/status", text, sizeof text) < 0) {
    return JSON_UNKNOWN;
  }
  const char* line = strstr(text, "\nVmHWM:");
  return line == NULL ? JSON_UNKNOWN : strtoll(line + strlen("\nVmHWM:"), NULL, 10);
}

void status_set_supervisor(struct status* status) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  status->supervisor_user_us = (int64_t)used.ru_utime.tv_sec * 1000000 + used.ru_utime.tv_usec;
  status->supervisor_system_us = (int64_t)used.ru_stime.tv_sec * 1000000 + used.ru_stime.tv_usec;
  status->supervisor_max_rss_kib = read_max_rss_kib();
}

static void add_signal(struct text* t, int64_t number) {
  static const char* const kNames[] = {
      "",        "SIGHUP",  "SIGINT",    "SIGQUIT", "SIGILL",   "SIGTRAP", "SIGABRT", "SIGBUS",
      "SIGFPE",  "SIGKILL", "SIGUSR1",   "SIGSEGV", "SIGUSR2",  "SIGPIPE", "SIGALRM", "SIGTERM",
      "SIGSTKFLT", "SIGCHLD", "SIGCONT", "SIGSTOP", "SIGTSTP",  "SIGTTIN", "SIGTTOU", "SIGURG",
      "SIGXCPU", "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGWINCH", "SIGIO",   "SIGPWR",  "SIGSYS"};
  char realtime[32];
  const char* name = NULL;
  if (number > 0 && number < (int64_t)(sizeof kNames / sizeof kNames[0])) {
    name = kNames[number];
  } else if (number > 0) {
    snprintf(realtime, sizeof realtime, "SIG%d", (int)number);
    name = realtime;
  }
  json_add_int(t, "signal", number);
  json_add_string(t, "signal_name", name);
}

static void add_usage(struct text* t, const struct status* s) {
  json_add_decimal(t, "user_s", s->user_us, 6);
  json_add_decimal(t, "sys_s", s->system_us, 6);
  json_add_int(t, "maxrss_kib", s->max_rss_kib);
  json_add_int(t, "faults_minor", s->minor_faults);
  json_add_int(t, "faults_major", s->major_faults);
  json_add_int(t, "in_blocks", s->blocks_in);
  json_add_int(t, "out_blocks", s->blocks_out);
  json_add_int(t, "ctx_voluntary", s->voluntary_switches);
  json_add_int(t, "ctx_involuntary", s->involuntary_switches);
  json_add_int(t, "read_bytes", s->read_bytes);
  json_add_int(t, "write_bytes", s->write_bytes);
  json_add_int(t, "rchar", s->read_chars);
  json_add_int(t, "wchar", s->write_chars);
  json_add_int(t, "du_before_kib", s->du_before_kib);
  json_add_int(t, "du_peak_kib", s->du_peak_kib);
  json_add_int(t, "du_after_kib", s->du_after_kib);
}

static void add_supervisor(struct text* t, const struct status* s) {
  json_open(t, "supervisor", '{');
  json_add_decimal(t, "user_s", s->supervisor_user_us, 6);
  json_add_decimal(t, "sys_s", s->supervisor_system_us, 6);
  json_add_int(t, "maxrss_kib", s->supervisor_max_rss_kib);
  json_add_int(t, "samples", s->samples);
  json_add_int(t, "samples_lost", s->samples_lost);
  json_close(t, '}');
}

void status_format(const struct status* s, struct text* t) {
  const bool steal_known = s->steal_ticks != JSON_UNKNOWN;
  json_open(t, NULL, '{');
  json_add_string(t, "state", s->state);
  json_add_int(t, "exit_code", s->exit_code);
  add_signal(t, s->signal);
  json_add_string(t, "error", s->error);
  json_add_decimal(t, "wall_s", s->wall_us, 6);
  json_add_decimal(t, "started_at", s->started_unix_ns, 9);
  json_add_decimal(t, "ended_at", s->ended_unix_ns, 9);
  add_usage(t, s);
  json_add_int(t, "leftover_processes", s->leftover_processes);
  if (s->oom_killed == JSON_UNKNOWN) {
    json_add_string(t, "oom_killed", NULL);
  } else {
    json_add_bool(t, "oom_killed", s->oom_killed != 0);
  }
  add_supervisor(t, s);
  json_add_decimal(t, "steal_s",
                   steal_known ? s->steal_ticks * 100 / sysconf(_SC_CLK_TCK) : JSON_UNKNOWN, 2);
  json_add_string(t, "boot_id", s->boot_id);
  json_close(t, '}');
  text_append(t, "\n", 1);
}
