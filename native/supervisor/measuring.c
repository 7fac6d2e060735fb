#define _GNU_SOURCE
#include "measuring.h"

#include <string.h>

#include "clock.h"
#include "log.h"

void measuring_open(struct measuring* m, const struct request* request,
                    const struct run_folder* folder, const struct device* device,
                    du_interrupt interrupt, void* context) {
  *m = (struct measuring){
      .device = *device,
      .interval_ns = request->interval_ns,
      .due_ns = INT64_MAX,
      .steal_at_begin = MISSING,
      .steal_now = MISSING,
      .oom_kills_at_begin = MISSING,
      .du = {.directories = request->du_directories,
             .count = request->du_count,
             .interrupt = interrupt,
             .context = context},
  };
  usage_init(&m->usage);
  machine_open(&m->machine);
  const int error = sampler_open(&m->sampler, folder->fd, SAMPLES_FILE);
  if (error != 0) {
    log_line("cannot create the samples file: %s", strerror(error));
  }
  du_watch_begin(&m->du);
}

// The next moment of the form begin + k * interval; those that were missed are left out.
static int64_t next_due(const struct measuring* m, int64_t now) {
  const int64_t elapsed = (now - m->begin_ns) / m->interval_ns;
  return m->begin_ns + (elapsed + 1) * m->interval_ns;
}

void measuring_take(struct measuring* m, struct tree* tree) {
  struct sample sample;
  for (int c = 0; c < COLUMN_COUNT; c++) {
    sample.value[c] = MISSING;
  }
  const int64_t now = clock_monotonic_ns();
  sample.value[COLUMN_TIME] = (now - m->begin_ns) / NS_PER_MS;
  usage_measure(&m->usage, tree, &sample);
  machine_measure(&m->machine, &sample);
  device_measure(&m->device, &sample);
  sample.value[COLUMN_DISK_USAGE] = du_watch_sample(&m->du);
  m->steal_now = sample.value[COLUMN_CPU_STEAL];
  m->due_ns = next_due(m, now);
  sampler_append(&m->sampler, &sample);
}

void measuring_begin(struct measuring* m, int64_t begin_ns, struct tree* tree) {
  m->begin_ns = begin_ns;
  measuring_take(m, tree);
  m->steal_at_begin = m->steal_now;
  m->oom_kills_at_begin = m->machine.oom_kills;
}

int64_t measuring_saw_oom_kill(const struct measuring* m) {
  if (m->oom_kills_at_begin == MISSING || m->machine.oom_kills == MISSING) {
    return JSON_UNKNOWN;
  }
  return m->machine.oom_kills > m->oom_kills_at_begin;
}

static void fill_from_reaped(const struct reaped* r, struct status* status) {
  status->user_us = r->user_us;
  status->system_us = r->system_us;
  status->max_rss_kib = r->max_rss_kib;
  status->minor_faults = r->minor_faults;
  status->major_faults = r->major_faults;
  status->blocks_in = r->blocks_in;
  status->blocks_out = r->blocks_out;
  status->voluntary_switches = r->voluntary_switches;
  status->involuntary_switches = r->involuntary_switches;
}

void measuring_finish(struct measuring* m, struct status* status) {
  fill_from_reaped(&m->usage.reaped, status);
  status->read_bytes = usage_io_total(&m->usage, IO_READ_BYTES);
  status->write_bytes = usage_io_total(&m->usage, IO_WRITE_BYTES);
  status->read_chars = usage_io_total(&m->usage, IO_READ_CHARS);
  status->write_chars = usage_io_total(&m->usage, IO_WRITE_CHARS);
  du_watch_end(&m->du);
  status->du_before_kib = m->du.before;
  status->du_peak_kib = m->du.peak;
  status->du_after_kib = m->du.after;
  if (m->steal_at_begin != MISSING && m->steal_now != MISSING) {
    status->steal_ticks = m->steal_now - m->steal_at_begin;
  }
  status->samples = m->sampler.written;
  status->samples_lost = m->sampler.lost;
}

void measuring_close(struct measuring* m) {
  sampler_close(&m->sampler);
  machine_close(&m->machine);
  device_close(&m->device);
  usage_free(&m->usage);
}
