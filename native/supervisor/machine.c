#define _GNU_SOURCE
#include "machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files.h"

struct named_value {
  const char* name;
  enum column column;
};

void machine_open(struct machine* machine) {
  const int flags = O_RDONLY | O_CLOEXEC;
  *machine = (struct machine){
      .stat_fd = open("/proc/stat", flags),
      .meminfo_fd = open("/proc/meminfo", flags),
      .vmstat_fd = open("/proc/vmstat", flags),
      .loadavg_fd = open("/proc/loadavg", flags),
      .pressure_cpu_fd = open("/proc/pressure/cpu", flags),
      .pressure_memory_fd = open("/proc/pressure/memory", flags),
      .pressure_io_fd = open("/proc/pressure/io", flags),
      .oom_kills = MISSING,
  };
}

void machine_close(struct machine* machine) {
  const int fds[] = {machine->stat_fd,         machine->meminfo_fd,
                     machine->vmstat_fd,       machine->loadavg_fd,
                     machine->pressure_cpu_fd, machine->pressure_memory_fd,
                     machine->pressure_io_fd};
  for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
    if (fds[i] >= 0) {
      close(fds[i]);
    }
  }
}

static int64_t parse_number(const char* text) {
  char* end;
  errno = 0;
  const long long value = strtoll(text, &end, 10);
  return end == text || errno != 0 ? MISSING : value;
}

// The number after `name` where a line begins with that name.
static int64_t value_of_line(const char* text, const char* name) {
  const size_t length = strlen(name);
  for (const char* line = text; line != NULL;) {
    if (strncmp(line, name, length) == 0) {
      return parse_number(line + length);
    }
    line = strchr(line, '\n');
    line = line == NULL ? NULL : line + 1;
  }
  return MISSING;
}

static void fill_named(const char* text, const struct named_value* names, size_t count,
                       struct sample* sample) {
  for (size_t i = 0; i < count; i++) {
    sample->value[names[i].column] = value_of_line(text, names[i].name);
  }
}

static void measure_memory(const struct machine* machine, struct sample* sample) {
  static const struct named_value kNames[] = {
      {"MemFree:", COLUMN_MEMORY_FREE}, {"MemAvailable:", COLUMN_MEMORY_AVAILABLE},
      {"Cached:", COLUMN_MEMORY_CACHED}, {"Dirty:", COLUMN_MEMORY_DIRTY},
      {"Writeback:", COLUMN_MEMORY_WRITEBACK}, {"SwapFree:", COLUMN_SWAP_FREE}};
  char text[8192];
  if (read_again(machine->meminfo_fd, text, sizeof text) > 0) {
    fill_named(text, kNames, sizeof kNames / sizeof kNames[0], sample);
  }
}

static void measure_vmstat(struct machine* machine, struct sample* sample) {
  static const struct named_value kNames[] = {{"pswpin ", COLUMN_SWAP_IN},
                                              {"pswpout ", COLUMN_SWAP_OUT}};
  char text[16384];
  if (read_again(machine->vmstat_fd, text, sizeof text) > 0) {
    fill_named(text, kNames, sizeof kNames / sizeof kNames[0], sample);
    machine->oom_kills = value_of_line(text, "oom_kill ");
  }
}

// "cpu  USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL ..." is the first line. The
// columns are in the same order.
static void measure_cpu(const struct machine* machine, struct sample* sample) {
  char text[256];
  if (read_again(machine->stat_fd, text, sizeof text) <= 0 || strncmp(text, "cpu ", 4) != 0) {
    return;
  }
  char* rest = text + 4;
  for (int c = COLUMN_CPU_USER; c <= COLUMN_CPU_STEAL; c++) {
    char* end;
    const long long ticks = strtoll(rest, &end, 10);
    if (end == rest) {
      return;
    }
    sample->value[c] = ticks;
    rest = end;
  }
}

// "0.20 0.18 0.12 RUNNING/ALL LASTPID"
static void measure_load(const struct machine* machine, struct sample* sample) {
  char text[128];
  int whole, hundredths, running;
  if (read_again(machine->loadavg_fd, text, sizeof text) > 0 &&
      sscanf(text, "%d.%2d %*s %*s %d/", &whole, &hundredths, &running) == 3) {
    sample->value[COLUMN_LOAD1] = 100 * (int64_t)whole + hundredths;
    sample->value[COLUMN_PROCS_RUNNING] = running;
  }
}

// "some avg10=0.00 avg60=0.00 avg300=0.00 total=123" and perhaps a line of "full".
static int64_t pressure_total(const char* text, const char* kind) {
  const char* line = strstr(text, kind);
  const char* total = line == NULL ? NULL : strstr(line, "total=");
  return total == NULL ? MISSING : parse_number(total + strlen("total="));
}

static void measure_pressure(const struct machine* machine, struct sample* sample) {
  char text[256];
  if (read_again(machine->pressure_cpu_fd, text, sizeof text) > 0) {
    sample->value[COLUMN_PSI_CPU_SOME] = pressure_total(text, "some ");
  }
  if (read_again(machine->pressure_memory_fd, text, sizeof text) > 0) {
    sample->value[COLUMN_PSI_MEMORY_SOME] = pressure_total(text, "some ");
    sample->value[COLUMN_PSI_MEMORY_FULL] = pressure_total(text, "full ");
  }
  if (read_again(machine->pressure_io_fd, text, sizeof text) > 0) {
    sample->value[COLUMN_PSI_IO_SOME] = pressure_total(text, "some ");
    sample->value[COLUMN_PSI_IO_FULL] = pressure_total(text, "full ");
  }
}

void machine_measure(struct machine* machine, struct sample* sample) {
  measure_memory(machine, sample);
  measure_vmstat(machine, sample);
  measure_cpu(machine, sample);
  measure_load(machine, sample);
  measure_pressure(machine, sample);
}
