#define _GNU_SOURCE
#include "switches.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text.h"

// A thread is given up only after several looks without it: a scan of the tree can
// overlook a process, and one given up too early would count twice from then on.
static const int kMissedLooksOfTheDead = 3;

static void add_thread(struct thread_list* list, struct thread_switches thread) {
  if (list->count == list->capacity) {
    list->capacity = list->capacity == 0 ? 64 : 2 * list->capacity;
    list->threads = checked_realloc(list->threads, list->capacity * sizeof *list->threads);
  }
  list->threads[list->count++] = thread;
}

static bool read_switches(int task_fd, const char* tid, struct thread_switches* out) {
  char name[64];
  char status[8192];
  snprintf(name, sizeof name, "%s/status", tid);
  const int fd = openat(task_fd, name, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return false;
  }
  const ssize_t n = read(fd, status, sizeof status - 1);
  close(fd);
  if (n <= 0) {
    return false;
  }
  status[n] = '\0';
  const char* counts = strstr(status, "\nvoluntary_ctxt_switches:");
  out->tid = atoi(tid);
  return counts != NULL && sscanf(counts,
                                  "\nvoluntary_ctxt_switches: %" SCNd64
                                  " nonvoluntary_ctxt_switches: %" SCNd64,
                                  &out->voluntary, &out->involuntary) == 2;
}

void switches_begin(struct switches* s) { s->current.count = 0; }

void switches_look_at(struct switches* s, pid_t pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
  DIR* tasks = opendir(path);
  if (tasks == NULL) {
    return;
  }
  const struct dirent* entry;
  while ((entry = readdir(tasks)) != NULL) {
    struct thread_switches thread = {0};
    if (isdigit((unsigned char)entry->d_name[0]) &&
        read_switches(dirfd(tasks), entry->d_name, &thread)) {
      add_thread(&s->current, thread);
    }
  }
  closedir(tasks);
}

static int compare_tids(const void* a, const void* b) {
  const pid_t x = ((const struct thread_switches*)a)->tid;
  const pid_t y = ((const struct thread_switches*)b)->tid;
  return (x > y) - (x < y);
}

static void count_as_ended(struct switches* s, const struct thread_switches* thread) {
  s->ended_voluntary += thread->voluntary;
  s->ended_involuntary += thread->involuntary;
}

// Carries into `current` the known threads that this look has not seen.
static void merge_unseen(struct switches* s) {
  const size_t seen = s->current.count;
  size_t j = 0;
  for (size_t i = 0; i < s->known.count; i++) {
    struct thread_switches* old = &s->known.threads[i];
    while (j < seen && s->current.threads[j].tid < old->tid) {
      j++;
    }
    if (j < seen && s->current.threads[j].tid == old->tid) {
      const struct thread_switches* now = &s->current.threads[j];
      if (now->voluntary < old->voluntary || now->involuntary < old->involuntary) {
        count_as_ended(s, old);  // another thread has got the same number
      }
    } else if (++old->looks_missed >= kMissedLooksOfTheDead) {
      count_as_ended(s, old);
    } else {
      add_thread(&s->current, *old);
    }
  }
}

static void sort_by_tid(struct thread_list* list) {
  if (list->count > 1) {
    qsort(list->threads, list->count, sizeof *list->threads, compare_tids);
  }
}

void switches_end(struct switches* s, int64_t* voluntary, int64_t* involuntary) {
  sort_by_tid(&s->current);
  merge_unseen(s);
  sort_by_tid(&s->current);

  const struct thread_list previous = s->known;
  s->known = s->current;
  s->current = previous;

  *voluntary = s->ended_voluntary;
  *involuntary = s->ended_involuntary;
  for (size_t i = 0; i < s->known.count; i++) {
    *voluntary += s->known.threads[i].voluntary;
    *involuntary += s->known.threads[i].involuntary;
  }
}

void switches_count_ended(struct switches* s, pid_t pid) {
  char path[64];
  char tid[16];
  snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
  snprintf(tid, sizeof tid, "%d", (int)pid);
  const int task_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  struct thread_switches last = {0};
  const bool readable = task_fd >= 0 && read_switches(task_fd, tid, &last);
  if (task_fd >= 0) {
    close(task_fd);
  }
  size_t kept = 0;
  for (size_t i = 0; i < s->known.count; i++) {
    if (s->known.threads[i].tid != pid) {
      s->known.threads[kept++] = s->known.threads[i];
    } else if (!readable) {
      last = s->known.threads[i];
    }
  }
  s->known.count = kept;
  count_as_ended(s, &last);
}

void switches_free(struct switches* s) {
  free(s->known.threads);
  free(s->current.threads);
  *s = (struct switches){0};
}
