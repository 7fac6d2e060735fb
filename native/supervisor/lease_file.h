// The lock file of a host: who may use it. One process at a time reads and changes it.
//
// The file is one line of JSON, shorter than a page, so that a process which is killed while
// it writes leaves the old line or the new one.

#ifndef BR_LEASE_FILE_H_
#define BR_LEASE_FILE_H_

#include <stdbool.h>
#include <stdint.h>

#include "host.h"
#include "text.h"

enum lease_state {
  LEASE_FREE,        // the file is empty: nobody has ever held it
  LEASE_HELD,
  LEASE_RELEASED,    // the rest tells of the last holder
  LEASE_UNREADABLE,  // somebody may hold it
};

struct lease {
  enum lease_state state;
  struct text owner;    // random name of one controller
  struct text store;    // name of the store that it works for
  struct text about;    // for people
  struct text process;  // means something to controllers only
  struct text run_dir;  // what was last started under this lease; "" = nothing
  struct text boot_id;  // of the host, at the last heartbeat
  int64_t fence;
  int64_t since_unix_ns;
  int64_t heartbeat_ns;  // time since that boot
  int64_t stale_ns;      // without a heartbeat for so long, the holder counts as dead
};

// An open and locked file, and the moment when it was locked.
struct lease_file {
  const char* path;
  int fd;
  struct host host;
  int64_t now_ns;        // time since boot, sleep included
  int64_t unchanged_ns;  // since the last change, as far as the host's clock can tell
};

// In the folder that every host has.
const char* lease_default_path(void);

// Returns 0 or an errno; ENOENT when it is not there and may not be made.
int lease_open(struct lease_file* file, const char* path, bool create);

// Why a file cannot be used, for people.
const char* lease_error(int error);

// Others may have it then; what lease_mark_running() said goes on.
void lease_unlock(const struct lease_file* file);
void lease_close(struct lease_file* file);

// The caller frees the lease in every case.
int lease_read(const struct lease_file* file, struct lease* out);
void lease_free(struct lease* lease);

// Returns 0 or an errno; E2BIG when its texts are too long for one page.
int lease_write(const struct lease_file* file, const struct lease* lease, bool durable);

// Tells others that something runs under this lease, until this process and those that it
// forks have closed the file or ended. The kernel keeps that, so no death can leave it behind.
int lease_mark_running(const struct lease_file* file);
bool lease_is_running(const struct lease_file* file);

#endif
