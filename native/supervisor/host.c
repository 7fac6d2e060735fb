#define _GNU_SOURCE
#include "host.h"

#include <string.h>
#include <unistd.h>

#include "files.h"

void host_read(struct host* host) {
  *host = (struct host){0};
  gethostname(host->name, sizeof host->name - 1);
  read_file("/proc/sys/kernel/random/boot_id", host->boot_id, sizeof host->boot_id);
  host->boot_id[strcspn(host->boot_id, "\n")] = '\0';
}
