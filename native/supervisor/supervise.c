#define _GNU_SOURCE
#include "supervise.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "clock.h"
#include "command_file.h"
#include "control.h"
#include "host.h"
#include "log.h"
#include "measuring.h"
#include "run_folder.h"
#include "status.h"

static const int64_t kStatusRetryNs = NS_PER_SECOND;

struct supervision {
  const struct request* request;
  struct run_folder folder;
  struct host host;
  struct process_id self;
  struct control control;
  struct measuring measuring;
  struct status status;
};

// --- Beginning. ---

static int refuse(struct front* front, const struct request* request, int error) {
  struct text message = {0};
  int exit_code = EXIT_TROUBLE;
  if (error == EEXIST) {
    exit_code = EXIT_TAKEN;
    text_printf(&message, "%s already holds a " COMMAND_FILE ": a step is started only once",
                request->run_dir);
  } else {
    text_printf(&message, "cannot use %s as run folder: %s", request->run_dir, strerror(error));
  }
  front_tell(front, exit_code, message.data);
  text_free(&message);
  return exit_code;
}

// Returns 0 or an errno.
static int claim(struct supervision* s, struct device* device) {
  int error = folder_open(&s->folder, s->request->run_dir);
  if (error != 0) {
    return error;
  }
  struct process_stat self = {.id.pid = getpid()};
  process_read_stat(getpid(), &self);
  s->self = self.id;
  host_read(&s->host);
  device_open(device, s->request->device_directory);
  error = command_file_create(&s->folder, s->request, &s->host, device, s->self);
  if (error != 0) {
    return error;
  }
  log_to(folder_open_output(&s->folder, LOG_FILE));
  error = folder_reserve_status(&s->folder);
  if (error != 0) {
    log_line("cannot reserve space for the status: %s", strerror(error));
  }
  return 0;
}

static void write_child_file(struct supervision* s) {
  struct text t = {0};
  json_open(&t, NULL, '{');
  json_add_int(&t, "pid", s->control.child.id.pid);
  json_add_int(&t, "start_time", (int64_t)s->control.child.id.start_time);
  json_close(&t, '}');
  text_append(&t, "\n", 1);
  const int error = folder_publish(&s->folder, CHILD_FILE ".new", CHILD_FILE, &t, false);
  if (error != 0) {
    log_line("cannot write " CHILD_FILE ": %s", strerror(error));
  }
  text_free(&t);
}

static bool fork_and_exec(struct supervision* s, const struct child_setup* setup,
                          struct text* error) {
  s->control.begin_ns = clock_monotonic_ns();
  s->status.started_unix_ns = clock_unix_ns();
  const int fork_error = child_fork(setup, &s->control.child);
  if (fork_error != 0) {
    text_printf(error, "cannot fork: %s", strerror(fork_error));
    return false;
  }
  write_child_file(s);
  if (!child_await_exec(&s->control.child, setup, error)) {
    usage_reap(&s->measuring.usage, s->control.child.id.pid);
    return false;
  }
  return true;
}

// False when the command cannot be started; `error` says why.
static bool start_child(struct supervision* s, struct text* error) {
  const struct child_setup setup = {
      .argv = s->request->argv,
      .environment = environment_create(s->request),
      .cwd = s->request->cwd,
      .stdout_fd = folder_open_output(&s->folder, STDOUT_FILE),
      .stderr_fd = folder_open_output(&s->folder, STDERR_FILE),
  };
  bool started = false;
  if (setup.stdout_fd < 0 || setup.stderr_fd < 0) {
    text_printf(error, "cannot create the output files: %s", strerror(errno));
  } else {
    started = fork_and_exec(s, &setup, error);
  }
  if (setup.stdout_fd >= 0) {
    close(setup.stdout_fd);
  }
  if (setup.stderr_fd >= 0) {
    close(setup.stderr_fd);
  }
  environment_free(setup.environment);
  return started;
}

static void tell_started(struct supervision* s, struct front* front) {
  struct text line = {0};
  json_open(&line, NULL, '{');
  json_add_int(&line, "pid", s->self.pid);
  json_add_int(&line, "start_time", (int64_t)s->self.start_time);
  json_close(&line, '}');
  front_tell(front, EXIT_OK, line.data);
  text_free(&line);
}

// --- Ending. ---

// Killed by the kernel for want of memory: the command itself, or what a shell ran for it.
static void judge_oom(struct supervision* s) {
  const bool killed_by_others =
      strcmp(s->status.state, "exited") == 0 &&
      (s->status.signal == SIGKILL || s->status.exit_code == 128 + SIGKILL);
  s->status.oom_killed = killed_by_others ? measuring_saw_oom_kill(&s->measuring) : 0;
}

static void fill_from_control(struct status* status, const struct control* control) {
  status->state = control->state;
  status->wall_us = control->wall_us;
  status->ended_unix_ns = control->ended_unix_ns;
  status->leftover_processes = control->leftover_processes;
  status_set_wait_status(status, control->wait_status);
}

static int publish_status(struct supervision* s) {
  struct text t = {0};
  status_set_supervisor(&s->status);
  status_format(&s->status, &t);
  int error;
  bool logged = false;
  for (;;) {
    error = folder_publish(&s->folder, STATUS_RESERVE_FILE, STATUS_FILE, &t, true);
    if (error == 0 || error == EEXIST || error == ENOENT) {  // ENOENT: the folder was deleted
      break;
    }
    if (!logged) {
      log_line("cannot write " STATUS_FILE ", trying until I can: %s", strerror(error));
      logged = true;
    }
    if (!control_pause(&s->control, kStatusRetryNs)) {
      log_line("asked to stop; the status is lost: %s", t.data);
      break;
    }
  }
  text_free(&t);
  return error == 0 || error == EEXIST ? EXIT_OK : EXIT_TROUBLE;
}

static int run_claimed(struct supervision* s, struct front* front, const struct device* device) {
  status_init(&s->status, "exited", s->host.boot_id);
  measuring_open(&s->measuring, s->request, &s->folder, device, control_has_news,
                 &s->control);
  struct text error = {0};
  const bool started = start_child(s, &error);
  if (started) {
    tell_started(s, front);
    control_run_to_end(&s->control, &s->measuring);
    fill_from_control(&s->status, &s->control);
    judge_oom(s);
    measuring_finish(&s->measuring, &s->status);
  } else {
    s->status.state = "failed";
    s->status.error = error.data;
    s->status.ended_unix_ns = clock_unix_ns();
  }
  log_line("%s%s%s", s->status.state, started ? "" : ": ", text_string(&error));
  const int exit_code = publish_status(s);
  if (!started) {
    tell_started(s, front);  // only now: who is told can read the status
  }
  measuring_close(&s->measuring);
  text_free(&error);
  return exit_code;
}

int supervise(const struct request* request, struct front* front) {
  struct supervision s = {.request = request, .folder.fd = -1};
  struct device device = {.stat_fd = -1};
  control_init(&s.control, request->timeout_ns, request->grace_ns);
  const int error = claim(&s, &device);
  const int exit_code =
      error == 0 ? run_claimed(&s, front, &device) : refuse(front, request, error);
  control_free(&s.control);
  folder_close(&s.folder);
  return exit_code;
}
