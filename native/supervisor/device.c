#define _GNU_SOURCE
#include "device.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "files.h"

// Columns in the order of /sys/dev/block/MAJOR:MINOR/stat, which has the numbers of the
// device's line in /proc/diskstats without the cost of all other devices' lines.
static const int kColumns[] = {
    COLUMN_DEVICE_READS,  -1, COLUMN_DEVICE_READ_SECTORS,  COLUMN_DEVICE_READ_MS,
    COLUMN_DEVICE_WRITES, -1, COLUMN_DEVICE_WRITE_SECTORS, COLUMN_DEVICE_WRITE_MS,
    COLUMN_DEVICE_IN_FLIGHT, COLUMN_DEVICE_IO_MS, COLUMN_DEVICE_WEIGHTED_MS,
    -1, -1, -1, -1, COLUMN_DEVICE_FLUSHES};  // discards, and flushes from Linux 5.5 on

static int stat_nearest(const char* directory, struct stat* out) {
  char path[PATH_MAX];
  if (strlen(directory) >= sizeof path) {
    return -1;
  }
  memcpy(path, directory, strlen(directory) + 1);
  while (stat(path, out) != 0) {
    char* slash = strrchr(path, '/');
    if (slash == NULL || strcmp(path, "/") == 0) {
      return -1;
    }
    slash[slash == path ? 1 : 0] = '\0';
  }
  return 0;
}

void device_open(struct device* device, const char* directory) {
  *device = (struct device){.stat_fd = -1};
  struct stat s;
  if (directory == NULL || stat_nearest(directory, &s) != 0) {
    return;
  }
  device->major_number = major(s.st_dev);
  device->minor_number = minor(s.st_dev);
  char path[64];
  char target[PATH_MAX];
  snprintf(path, sizeof path, "/sys/dev/block/%u:%u", device->major_number, device->minor_number);
  const ssize_t length = readlink(path, target, sizeof target - 1);
  if (length <= 0) {
    return;
  }
  target[length] = '\0';
  const char* slash = strrchr(target, '/');
  snprintf(device->name, sizeof device->name, "%.63s", slash == NULL ? target : slash + 1);
  snprintf(path, sizeof path, "/sys/dev/block/%u:%u/stat", device->major_number,
           device->minor_number);
  device->stat_fd = open(path, O_RDONLY | O_CLOEXEC);
}

void device_close(struct device* device) {
  if (device->stat_fd >= 0) {
    close(device->stat_fd);
  }
}

void device_measure(const struct device* device, struct sample* sample) {
  char text[512];
  if (read_again(device->stat_fd, text, sizeof text) <= 0) {
    return;
  }
  char* rest = text;
  for (size_t i = 0; i < sizeof kColumns / sizeof kColumns[0]; i++) {
    char* end;
    const long long value = strtoll(rest, &end, 10);
    if (end == rest) {
      return;
    }
    if (kColumns[i] >= 0) {
      sample->value[kColumns[i]] = value;
    }
    rest = end;
  }
}
