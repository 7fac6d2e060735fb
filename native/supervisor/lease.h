// The lease: one controller at a time may use a host, whichever stores the controllers keep.

#ifndef BR_LEASE_H_
#define BR_LEASE_H_

#include <stdint.h>

// Who says to hold the lease.
struct lease_claim {
  const char* file;  // NULL = no lease is used
  const char* owner;
  int64_t fence;
};

// Lets only the present holder go on, and notes that something runs under its lease until this
// process and those that it forks have ended. `run_dir` may be NULL. Returns an exit code.
int lease_admit(const struct lease_claim* claim, const char* run_dir);

// What `lease take` is told besides.
struct lease_request {
  struct lease_claim claim;
  const char* store;
  const char* about;
  const char* process;
  const char* dead;  // owner that the caller knows to have ended; may be NULL
  int64_t stale_ns;
};

// The command line's verbs: each prints one JSON line and returns an exit code.
int lease_take(const struct lease_request* request);
int lease_renew(const struct lease_claim* claim);
int lease_release(const struct lease_claim* claim);
int lease_show(const char* file);

// All of them, from the arguments that follow `lease`.
int lease_command(int argc, char** argv);

#endif
