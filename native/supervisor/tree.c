#define _GNU_SOURCE
#include "tree.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "files.h"
#include "text.h"

// A process gets its pid some microseconds before it can be found as a child. So only
// after a scan that came later than the newest pid, the next one can be left out.
static const int kQuietUpdatesBeforeScan = 1;

struct parent_link {
  pid_t parent;
  pid_t child;
};

void tree_init(struct tree* tree) {
  *tree = (struct tree){.newest_pid = -1};
  tree->loadavg_fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
#ifndef BR_TEST_WITHOUT_CHILDREN_FILES
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
  tree->kernel_lists_children = access(path, R_OK) == 0;
#endif
}

void tree_free(struct tree* tree) {
  free(tree->processes);
  free(tree->links);
  if (tree->loadavg_fd >= 0) {
    close(tree->loadavg_fd);
  }
  *tree = (struct tree){0};
}

static void add_process(struct tree* tree, pid_t pid) {
  for (size_t i = 0; i < tree->count; i++) {
    if (tree->processes[i].id.pid == pid) {
      return;  // it changed its parent during the scan
    }
  }
  if (tree->count == tree->capacity) {
    tree->capacity = tree->capacity == 0 ? 32 : 2 * tree->capacity;
    tree->processes = checked_realloc(tree->processes, tree->capacity * sizeof *tree->processes);
  }
  tree->processes[tree->count++] = (struct process_stat){.id.pid = pid};
}

// Children are listed per thread: the one that forked them. Each list is
// "PID PID ... " and may be longer than one read.
static void add_children_of_thread(struct tree* tree, int task_fd, const char* tid) {
  char name[64];
  snprintf(name, sizeof name, "%s/children", tid);
  const int fd = openat(task_fd, name, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return;
  }
  char chunk[1024];
  ssize_t n;
  pid_t pid = 0;
  while ((n = read(fd, chunk, sizeof chunk)) > 0) {
    for (ssize_t i = 0; i < n; i++) {
      if (isdigit((unsigned char)chunk[i])) {
        pid = 10 * pid + (chunk[i] - '0');
      } else if (pid != 0) {
        add_process(tree, pid);
        pid = 0;
      }
    }
  }
  close(fd);
}

static void add_children_by_thread(struct tree* tree, pid_t parent) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/task", (int)parent);
  DIR* tasks = opendir(path);
  if (tasks == NULL) {
    return;
  }
  const struct dirent* entry;
  while ((entry = readdir(tasks)) != NULL) {
    if (isdigit((unsigned char)entry->d_name[0])) {
      add_children_of_thread(tree, dirfd(tasks), entry->d_name);
    }
  }
  closedir(tasks);
}

static void read_links_of_host(struct tree* tree) {
  tree->link_count = 0;
  DIR* proc = opendir("/proc");
  if (proc == NULL) {
    return;
  }
  const struct dirent* entry;
  while ((entry = readdir(proc)) != NULL) {
    struct process_stat stat;
    if (!isdigit((unsigned char)entry->d_name[0]) ||
        !process_read_stat(atoi(entry->d_name), &stat)) {
      continue;
    }
    if (tree->link_count == tree->link_capacity) {
      tree->link_capacity = tree->link_capacity == 0 ? 256 : 2 * tree->link_capacity;
      tree->links = checked_realloc(tree->links, tree->link_capacity * sizeof *tree->links);
    }
    tree->links[tree->link_count++] = (struct parent_link){stat.parent, stat.id.pid};
  }
  closedir(proc);
}

static void add_children(struct tree* tree, pid_t parent) {
  if (tree->kernel_lists_children) {
    add_children_by_thread(tree, parent);
    return;
  }
  for (size_t i = 0; i < tree->link_count; i++) {
    if (tree->links[i].parent == parent) {
      add_process(tree, tree->links[i].child);
    }
  }
}

void tree_scan(struct tree* tree) {
  if (!tree->kernel_lists_children) {
    read_links_of_host(tree);
  }
  tree->count = 0;
  add_children(tree, getpid());
  size_t kept = 0;
  for (size_t i = 0; i < tree->count; i++) {
    struct process_stat stat;
    const pid_t pid = tree->processes[i].id.pid;
    if (process_read_stat(pid, &stat)) {
      tree->processes[kept++] = stat;
      add_children(tree, pid);
    }
  }
  tree->count = kept;
}

// "0.20 0.18 0.12 1/80 NEWESTPID": threads have pids too.
static bool host_is_quiet(struct tree* tree) {
  char text[128];
  int pid;
  if (read_again(tree->loadavg_fd, text, sizeof text) <= 0 ||
      sscanf(text, "%*s %*s %*s %*s %d", &pid) != 1) {
    return false;
  }
  tree->quiet_updates = pid == tree->newest_pid ? tree->quiet_updates + 1 : 0;
  tree->newest_pid = pid;
  return tree->quiet_updates > kQuietUpdatesBeforeScan;
}

static void read_known_again(struct tree* tree) {
  size_t kept = 0;
  for (size_t i = 0; i < tree->count; i++) {
    struct process_stat stat;
    if (process_read_stat(tree->processes[i].id.pid, &stat) &&
        stat.id.start_time == tree->processes[i].id.start_time) {
      tree->processes[kept++] = stat;
    }
  }
  tree->count = kept;
}

void tree_update(struct tree* tree) {
  if (host_is_quiet(tree)) {
    read_known_again(tree);
  } else {
    tree_scan(tree);
  }
}

size_t tree_signal(struct tree* tree, int signal) {
  tree_scan(tree);
  size_t alive = 0;
  for (size_t i = 0; i < tree->count; i++) {
    const struct process_stat* process = &tree->processes[i];
    if (process->state != 'Z' && process->state != 'X') {
      alive++;
      process_signal(process->id, signal);
    }
  }
  return alive;
}
