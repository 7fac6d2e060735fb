#define _GNU_SOURCE
#include "usage.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "files.h"

// enum io_counter counts in the order of these columns.
static const enum column kIoColumns[IO_COUNTERS] = {
    COLUMN_READ_CHARS, COLUMN_WRITE_CHARS, COLUMN_READ_CALLS,           COLUMN_WRITE_CALLS,
    COLUMN_READ_BYTES, COLUMN_WRITE_BYTES, COLUMN_CANCELLED_WRITE_BYTES};

static const enum column kNeverFalling[] = {
    COLUMN_USER,        COLUMN_SYSTEM,      COLUMN_MINOR_FAULTS,
    COLUMN_MAJOR_FAULTS, COLUMN_READ_CHARS,  COLUMN_WRITE_CHARS,
    COLUMN_READ_CALLS,  COLUMN_WRITE_CALLS, COLUMN_READ_BYTES,
    COLUMN_WRITE_BYTES, COLUMN_CANCELLED_WRITE_BYTES};

void usage_init(struct usage* usage) {
  *usage = (struct usage){.own_io_fd = open("/proc/self/io", O_RDONLY | O_CLOEXEC)};
  for (int i = 0; i < COLUMN_COUNT; i++) {
    usage->highest[i] = MISSING;
  }
}

void usage_free(struct usage* usage) {
  switches_free(&usage->switches);
  if (usage->own_io_fd >= 0) {
    close(usage->own_io_fd);
  }
}

static bool parse_io(const char* text, int64_t io[IO_COUNTERS]) {
  return sscanf(text,
                "rchar: %" SCNd64 " wchar: %" SCNd64 " syscr: %" SCNd64 " syscw: %" SCNd64
                " read_bytes: %" SCNd64 " write_bytes: %" SCNd64
                " cancelled_write_bytes: %" SCNd64,
                &io[IO_READ_CHARS], &io[IO_WRITE_CHARS], &io[IO_READ_CALLS], &io[IO_WRITE_CALLS],
                &io[IO_READ_BYTES], &io[IO_WRITE_BYTES],
                &io[IO_CANCELLED_WRITE_BYTES]) == IO_COUNTERS;
}

// Adds a process's counters, which include the children it has waited for.
// False when they exist but may not be read.
static bool add_io(pid_t pid, int64_t io[IO_COUNTERS]) {
  char path[64];
  char text[512];
  int64_t own[IO_COUNTERS];
  snprintf(path, sizeof path, "/proc/%d/io", (int)pid);
  if (read_file(path, text, sizeof text) < 0 || !parse_io(text, own)) {
    // Of a process without memory, which is ending or a zombie, only root can read them.
    // They are in its parent's as soon as that waits for it.
    struct process_stat stat;
    return !process_read_stat(pid, &stat) || stat.virtual_bytes == 0;
  }
  for (int i = 0; i < IO_COUNTERS; i++) {
    io[i] += own[i];
  }
  return true;
}

// This process's own counters. Returns the number of characters read for that, which
// the counters do not include yet, or -1 when the kernel does not count.
static ssize_t read_own_io(const struct usage* usage, int64_t io[IO_COUNTERS]) {
  char text[512];
  const ssize_t length = read_again(usage->own_io_fd, text, sizeof text);
  return length > 0 && parse_io(text, io) ? length : -1;
}

static int64_t microseconds(struct timeval t) {
  return (int64_t)t.tv_sec * 1000000 + t.tv_usec;
}

static void add_rusage(struct reaped* r, const struct rusage* used) {
  r->user_us += microseconds(used->ru_utime);
  r->system_us += microseconds(used->ru_stime);
  r->max_rss_kib = used->ru_maxrss > r->max_rss_kib ? used->ru_maxrss : r->max_rss_kib;
  r->minor_faults += used->ru_minflt;
  r->major_faults += used->ru_majflt;
  r->blocks_in += used->ru_inblock;
  r->blocks_out += used->ru_oublock;
  r->voluntary_switches += used->ru_nvcsw;
  r->involuntary_switches += used->ru_nivcsw;
}

int usage_reap(struct usage* usage, pid_t pid) {
  struct reaped* r = &usage->reaped;
  switches_count_ended(&usage->switches, pid);

  // Waiting for a process adds its io counters to those of the waiting one. So their rise
  // is what it has used, whoever it ran as; only the first reading is in it too.
  int64_t before[IO_COUNTERS], after[IO_COUNTERS];
  const ssize_t length = read_own_io(usage, before);
  int status = 0;
  struct rusage used = {0};
  while (wait4(pid, &status, 0, &used) < 0 && errno == EINTR) {
  }
  add_rusage(r, &used);
  if (length < 0 || read_own_io(usage, after) < 0) {
    r->io_unreadable = true;
    return status;
  }
  for (int i = 0; i < IO_COUNTERS; i++) {
    r->io[i] += after[i] - before[i];
  }
  r->io[IO_READ_CHARS] -= length;
  r->io[IO_READ_CALLS] -= 1;
  return status;
}

static void fill_from_stats(const struct usage* usage, const struct tree* tree,
                            struct sample* sample) {
  const struct reaped* r = &usage->reaped;
  int64_t user_ticks = 0, system_ticks = 0, processes = 0, threads = 0, rss_pages = 0;
  sample->value[COLUMN_MINOR_FAULTS] = r->minor_faults;
  sample->value[COLUMN_MAJOR_FAULTS] = r->major_faults;
  for (size_t i = 0; i < tree->count; i++) {
    const struct process_stat* p = &tree->processes[i];
    user_ticks += p->user_ticks;
    system_ticks += p->system_ticks;
    sample->value[COLUMN_MINOR_FAULTS] += p->minor_faults;
    sample->value[COLUMN_MAJOR_FAULTS] += p->major_faults;
    if (p->state != 'Z' && p->state != 'X') {
      processes++;
      threads += p->threads;
      rss_pages += p->rss_pages;
    }
  }
  const int64_t ticks_per_second = sysconf(_SC_CLK_TCK);
  sample->value[COLUMN_USER] = user_ticks * 1000 / ticks_per_second + r->user_us / 1000;
  sample->value[COLUMN_SYSTEM] = system_ticks * 1000 / ticks_per_second + r->system_us / 1000;
  sample->value[COLUMN_PROCESSES] = processes;
  sample->value[COLUMN_THREADS] = threads;
  sample->value[COLUMN_RSS] = processes == 0 ? MISSING : rss_pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void fill_io(const struct usage* usage, const struct tree* tree, struct sample* sample) {
  int64_t io[IO_COUNTERS];
  bool readable = !usage->reaped.io_unreadable;
  for (int i = 0; i < IO_COUNTERS; i++) {
    io[i] = usage->reaped.io[i];
  }
  for (size_t i = 0; i < tree->count; i++) {
    readable = add_io(tree->processes[i].id.pid, io) && readable;
  }
  for (int i = 0; i < IO_COUNTERS; i++) {
    sample->value[kIoColumns[i]] = readable ? io[i] : MISSING;
  }
}

// Keeps a counter from falling when a scan has missed a process, or when a process
// has ended that nobody waited for (its parent ignores SIGCHLD).
static void hold_at_highest(struct usage* usage, struct sample* sample) {
  for (size_t i = 0; i < sizeof kNeverFalling / sizeof kNeverFalling[0]; i++) {
    const enum column c = kNeverFalling[i];
    if (sample->value[c] == MISSING) {
      continue;
    }
    if (sample->value[c] < usage->highest[c]) {
      sample->value[c] = usage->highest[c];
    }
    usage->highest[c] = sample->value[c];
  }
}

void usage_measure(struct usage* usage, struct tree* tree, struct sample* sample) {
  tree_update(tree);
  fill_from_stats(usage, tree, sample);
  fill_io(usage, tree, sample);
  hold_at_highest(usage, sample);

  switches_begin(&usage->switches);
  for (size_t i = 0; i < tree->count; i++) {
    switches_look_at(&usage->switches, tree->processes[i].id.pid);
  }
  switches_end(&usage->switches, &sample->value[COLUMN_VOLUNTARY_SWITCHES],
               &sample->value[COLUMN_INVOLUNTARY_SWITCHES]);
}

int64_t usage_io_total(const struct usage* usage, enum io_counter counter) {
  const int64_t sampled = usage->highest[kIoColumns[counter]];
  const int64_t reaped = usage->reaped.io_unreadable ? MISSING : usage->reaped.io[counter];
  return reaped > sampled ? reaped : sampled;
}
