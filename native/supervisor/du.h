// Disk usage as `du -s -k` counts it: allocated blocks, not lengths; a file with
// several hard links once; directories too; symbolic links not followed.

#ifndef BR_DU_H_
#define BR_DU_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Asked now and then during a walk; true ends it.
typedef bool (*du_interrupt)(void* context);

struct inode_id {
  uint64_t device, inode;
};

// One walk over one or more directories. What it has met in one of them is not counted
// again in the next.
struct du {
  struct inode_id* seen;  // hash table, {0, 0} = free
  size_t seen_count;
  size_t seen_capacity;
  bool remember_everything;  // not only files with several links
  uint64_t blocks;           // of 512 bytes
  unsigned entries;
  du_interrupt interrupt;  // may be NULL
  void* context;
  bool interrupted;
  int error;  // errno of the first thing that could not be read, 0 = none
};

void du_begin(struct du* du, bool remember_everything);
void du_end(struct du* du);

// Walks one directory and stores its KiB. Returns 0; ENOENT when it is not there; EEXIST
// when an earlier directory of this walk was the same; EINTR when interrupted. Files that
// vanish during the walk are no error; what cannot be read is in du->error.
// A symbolic link given as the directory itself is followed.
int du_directory(struct du* du, const char* directory, int64_t* kib);

// --- Watching the directories of a run. ---

struct du_watch {
  const char* const* directories;
  size_t count;
  du_interrupt interrupt;
  void* context;
  int64_t before, peak, after;  // KiB; MISSING = not known
  int64_t not_before_ns;        // monotonic: when the next walk is due
};

void du_watch_begin(struct du_watch* watch);

// KiB of all directories, or MISSING: when none exists, when the walk was interrupted,
// and when the last one was so recent that walking would cost more than 1 % of the time.
int64_t du_watch_sample(struct du_watch* watch);

void du_watch_end(struct du_watch* watch);

// The command line's `du`. Returns the exit code.
int du_command(char* const* directories, size_t count);

#endif
