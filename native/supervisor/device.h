// Counters of the block device below a directory.

#ifndef BR_DEVICE_H_
#define BR_DEVICE_H_

#include "columns.h"

struct device {
  char name[64];  // "nvme0n1p2"; "" when no block device is known for the directory
  unsigned major_number, minor_number;
  int stat_fd;  // -1: no counters
};

// The device of the directory, or of its nearest parent that exists. Memory and
// stacked file systems (tmpfs, overlay, btrfs, NFS) have none. NULL = none.
void device_open(struct device* device, const char* directory);
void device_close(struct device* device);

void device_measure(const struct device* device, struct sample* sample);

#endif
