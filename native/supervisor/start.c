#define _GNU_SOURCE
#include "start.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "files.h"
#include "front.h"
#include "inspect.h"
#include "ours.h"
#include "run_folder.h"
#include "supervise.h"
#include "text.h"

static const int64_t kLookAgainNs = NS_PER_MS / 5;

static int complain(const char* what, const char* about, int error) {
  fprintf(stderr, "br-supervise: %s%s: %s\n", what, about, strerror(error));
  return EXIT_TROUBLE;
}

// Children that an exec() left to this process would look like the command's.
static bool has_children(void) {
  siginfo_t info;
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static int start_here(const struct request* request) {
  if (has_children()) {
    fputs("br-supervise: this process has children already, so it cannot tell the command's "
          "from them; start without --foreground\n", stderr);
    return EXIT_TROUBLE;
  }
  struct front front = {.pipe = -1};
  return supervise(request, &front);
}

// The second fork: the supervisor's parent is gone and it can never get a terminal.
static _Noreturn void become_daemon(const struct request* request, int pipe) {
  setsid();
  const pid_t pid = fork();
  if (pid != 0) {
    _exit(pid < 0 ? EXIT_TROUBLE : EXIT_OK);
  }
  silence_standard_streams();
  if (chdir("/") != 0) {
    _exit(EXIT_TROUBLE);
  }
  struct front front = {.pipe = pipe};
  exit(supervise(request, &front));
}

static void close_lock(int lock) {
  if (lock >= 0) {
    close(lock);
  }
}

static int start_in_background(const struct request* request, int lock) {
  int pipe[2];
  if (pipe2(pipe, O_CLOEXEC) != 0) {
    return complain("cannot create a pipe", "", errno);
  }
  const pid_t pid = fork();
  if (pid < 0) {
    return complain("cannot fork", "", errno);
  }
  if (pid == 0) {
    close(pipe[0]);
    close_lock(lock);  // held by this process's parent until the run folder is taken
    become_daemon(request, pipe[1]);
  }
  close(pipe[1]);
  const int exit_code = front_wait(pipe[0]);
  close(pipe[0]);
  waitpid(pid, NULL, 0);
  return exit_code;
}

// For a caller far away: one round trip tells that a short run began, how it ended, and what
// it left.
static void tell_if_ended(const struct request* request) {
  struct text status = {0};
  text_printf(&status, "%s/" STATUS_FILE, request->run_dir);
  const int64_t until_ns = clock_monotonic_ns() + request->await_ns;
  while (access(status.data, F_OK) != 0 && clock_monotonic_ns() < until_ns) {
    clock_sleep_ns(kLookAgainNs);
  }
  if (access(status.data, F_OK) == 0 && state_command(request->run_dir) == EXIT_OK &&
      request->pack != NULL) {
    struct pack_request pack = *request->pack;
    pack.run_dir = request->run_dir;
    pack_command(&pack);
  }
  text_free(&status);
}

static int start_in_folder(struct request* request, int lock) {
  if (mkdir(request->run_dir, 0777) != 0 && errno != EEXIST) {
    return complain("cannot create directory ", request->run_dir, errno);
  }
  char* canonical = realpath(request->run_dir, NULL);
  if (canonical == NULL) {
    return complain("cannot find directory ", request->run_dir, errno);
  }
  const char* given_id = request->run_id;
  request->run_dir = canonical;
  if (given_id == NULL) {
    request->run_id = canonical;
  }
  int exit_code = request->foreground ? start_here(request) : start_in_background(request, lock);
  if (exit_code == EXIT_OK && !request->foreground && request->await_ns > 0) {
    // The run has begun: what cannot be sent along now is there to be asked for.
    tell_if_ended(request);
  }
  request->run_id = given_id;
  free(canonical);
  return exit_code;
}

static bool is_taken(const char* run_dir) {
  struct text path = {0};
  text_printf(&path, "%s/" COMMAND_FILE, run_dir);
  const bool taken = access(path.data, F_OK) == 0;
  text_free(&path);
  return taken;
}

// Two callers may want the same step: who comes second must not empty the first one's folders.
static int start_fresh(struct request* request) {
  const int lock = ours_lock(&request->fresh);
  if (lock < 0) {
    return complain("cannot lock the marker of ", request->fresh.items[0].work, errno);
  }
  int exit_code = EXIT_TAKEN;
  if (is_taken(request->run_dir)) {
    fprintf(stderr, "br-supervise: %s already holds a " COMMAND_FILE
            ": a step is started only once\n", request->run_dir);
  } else {
    exit_code = ours_fresh(&request->fresh);
  }
  if (exit_code == EXIT_OK) {
    exit_code = start_in_folder(request, lock);
  }
  close_lock(lock);
  return exit_code;
}

int start_command(struct request* request) {
  return request->fresh.count > 0 ? start_fresh(request) : start_in_folder(request, -1);
}
