// The process tree: every descendant of the calling process.
//
// The caller must be a child subreaper. Then a descendant whose parent dies
// becomes its child, so nothing that the command started leaves the tree, not
// even by setsid() or a double fork.

#ifndef BR_TREE_H_
#define BR_TREE_H_

#include <stdbool.h>
#include <stddef.h>

#include "process.h"

struct tree {
  struct process_stat* processes;
  size_t count;
  size_t capacity;
  bool kernel_lists_children;  // /proc/PID/task/TID/children is there
  struct parent_link* links;   // else: who is whose child, for the whole host
  size_t link_count;
  size_t link_capacity;
  int loadavg_fd;
  int newest_pid;     // of the host, at the last update
  int quiet_updates;  // since when it is the same
};

void tree_init(struct tree* tree);
void tree_free(struct tree* tree);

// Lists the tree, parents before children. Zombies are in it. A process that is born,
// or loses its parent, during the scan may be missed; the next scan has it.
//
// A parent's counters are read before its children are listed and read. So a child that
// the parent waits for meanwhile is missing for once, but never counted twice (in
// itself and in its parent).
void tree_scan(struct tree* tree);

// The same for less: when nothing was forked on the whole host meanwhile, the processes
// known already are all there can be, and only they are read again. Listing the children
// of every thread would otherwise be half of what a sample costs.
void tree_update(struct tree* tree);

// Scans, then signals every process that has not ended. Returns how many there were.
size_t tree_signal(struct tree* tree, int signal);

#endif
