#define _GNU_SOURCE
#include "serve_spawn.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "child.h"
#include "process.h"
#include "text.h"

void close_descriptor(int* fd) {
  if (*fd >= 0) {
    close(*fd);
  }
  *fd = -1;
}

void spawned_close(struct spawned* process) {
  close_descriptor(&process->status);
  close_descriptor(&process->input);
  close_descriptor(&process->output[0]);
  close_descriptor(&process->output[1]);
}

// The ends that the child gets.
struct child_ends {
  int status, input, output[2];
};

static void close_child_ends(struct child_ends* ends) {
  close_descriptor(&ends->status);
  close_descriptor(&ends->input);
  close_descriptor(&ends->output[0]);
  close_descriptor(&ends->output[1]);
}

static int make_pipe(int* ours, int* childs, bool child_writes) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return errno;
  }
  *ours = ends[child_writes ? 0 : 1];
  *childs = ends[child_writes ? 1 : 0];
  fcntl(*ours, F_SETFL, O_NONBLOCK);
  return 0;
}

static int make_pipes(struct spawned* ours, struct child_ends* childs, bool with_input) {
  int error = make_pipe(&ours->status, &childs->status, true);
  for (int i = 0; i < 2 && error == 0; i++) {
    error = make_pipe(&ours->output[i], &childs->output[i], true);
  }
  if (error == 0 && with_input) {
    error = make_pipe(&ours->input, &childs->input, false);
  } else if (error == 0) {
    childs->input = open("/dev/null", O_RDONLY | O_CLOEXEC);
    error = childs->input < 0 ? errno : 0;
  }
  return error;
}

static bool is_overridden(const char* entry, char* const* additions) {
  const size_t length = strcspn(entry, "=");
  for (; *additions != NULL; additions++) {
    if (strncmp(*additions, entry, length) == 0 && (*additions)[length] == '=') {
      return true;
    }
  }
  return false;
}

// The entries still belong to environ and to the additions.
static char** make_environment(char* const* additions) {
  char** list = NULL;
  size_t count = 0;
  for (char* const* source = environ; *source != NULL; source++) {
    if (!is_overridden(*source, additions)) {
      list = checked_realloc(list, (count + 2) * sizeof *list);
      list[count++] = *source;
    }
  }
  for (; *additions != NULL; additions++) {
    list = checked_realloc(list, (count + 2) * sizeof *list);
    list[count++] = *additions;
  }
  if (list == NULL) {
    list = checked_realloc(NULL, sizeof *list);
  }
  list[count] = NULL;
  return list;
}

static _Noreturn void fail(int pipe, enum spawn_stage stage) {
  const struct spawn_failure failure = {stage, errno};
  _exit(write(pipe, &failure, sizeof failure) < 0 ? 126 : 127);
}

static _Noreturn void become_command(const struct demand* demand, char** environment,
                                     const struct child_ends* ends, pid_t parent) {
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) {
    _exit(126);  // it died before the line above
  }
  if (dup2(ends->input, STDIN_FILENO) < 0 || dup2(ends->output[0], STDOUT_FILENO) < 0 ||
      dup2(ends->output[1], STDERR_FILENO) < 0) {
    fail(ends->status, SPAWN_PREPARE);
  }
  if (demand->cwd != NULL && chdir(demand->cwd) != 0) {
    fail(ends->status, SPAWN_CHANGE_DIRECTORY);
  }
  restore_signals();
  environ = environment;  // execvp looks PATH up here
  execvp(demand->argv[0], demand->argv);
  fail(ends->status, SPAWN_EXECUTE);
}

int spawn(const struct demand* demand, bool with_input, struct spawned* out) {
  *out = (struct spawned){.status = -1, .input = -1, .output = {-1, -1}};
  struct child_ends ends = {-1, -1, {-1, -1}};
  int error = make_pipes(out, &ends, with_input);
  if (error == 0) {
    char** environment = make_environment(demand->env);
    const pid_t parent = getpid();
    out->pid = fork();
    if (out->pid == 0) {
      become_command(demand, environment, &ends, parent);
    }
    error = out->pid < 0 ? errno : 0;
    free(environment);
  }
  close_child_ends(&ends);
  if (error != 0) {
    spawned_close(out);
  }
  return error;
}

static bool is_other_in_group(pid_t pid, pid_t leader) {
  struct process_stat stat;
  return pid > 0 && pid != leader && getpgid(pid) == leader && process_read_stat(pid, &stat) &&
         stat.state != 'Z' && stat.state != 'X';
}

bool group_has_others(pid_t leader) {
  DIR* directory = opendir("/proc");
  if (directory == NULL) {
    return false;
  }
  bool found = false;
  const struct dirent* entry;
  while (!found && (entry = readdir(directory)) != NULL) {
    found = is_other_in_group((pid_t)atoi(entry->d_name), leader);
  }
  closedir(directory);
  return found;
}
