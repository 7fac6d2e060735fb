// status.json: how a run ended. All keys are always there; what is not known is null.

#ifndef BR_STATUS_H_
#define BR_STATUS_H_

#include <stdint.h>

#include "json.h"
#include "text.h"

// Numbers that are not known are JSON_UNKNOWN, which is the same value as MISSING.
struct status {
  const char* state;  // "exited", "failed", "timeout", "killed", "lost"
  const char* error;  // may be NULL
  int64_t exit_code, signal;
  int64_t wall_us;
  int64_t started_unix_ns, ended_unix_ns;
  int64_t user_us, system_us;
  int64_t max_rss_kib;
  int64_t minor_faults, major_faults;
  int64_t blocks_in, blocks_out;
  int64_t voluntary_switches, involuntary_switches;
  int64_t read_bytes, write_bytes, read_chars, write_chars;
  int64_t du_before_kib, du_peak_kib, du_after_kib;
  int64_t leftover_processes;
  int64_t oom_killed;  // 0 or 1
  int64_t steal_ticks;
  int64_t supervisor_user_us, supervisor_system_us, supervisor_max_rss_kib;
  int64_t samples, samples_lost;
  const char* boot_id;
};

// Everything unknown.
void status_init(struct status* status, const char* state, const char* boot_id);

void status_set_wait_status(struct status* status, int wait_status);

// What the calling process has used itself.
void status_set_supervisor(struct status* status);

void status_format(const struct status* status, struct text* out);

#endif
