// The columns of the samples file, in their order: the only list of them.
//
// X(identifier, name in the header line, decimals). A value is kept as an integer
// in units of 10^-decimals. What each one means is in README.md.

#ifndef BR_COLUMNS_H_
#define BR_COLUMNS_H_

#include <stdint.h>

#define SAMPLE_COLUMNS(X)                              \
  X(TIME, "t_s", 3)                                    \
  X(USER, "utime_s", 3)                                \
  X(SYSTEM, "stime_s", 3)                              \
  X(PROCESSES, "procs", 0)                             \
  X(THREADS, "threads", 0)                             \
  X(RSS, "rss_kib", 0)                                 \
  X(VOLUNTARY_SWITCHES, "ctx_voluntary", 0)            \
  X(INVOLUNTARY_SWITCHES, "ctx_involuntary", 0)        \
  X(READ_CHARS, "rchar", 0)                            \
  X(WRITE_CHARS, "wchar", 0)                           \
  X(READ_CALLS, "syscr", 0)                            \
  X(WRITE_CALLS, "syscw", 0)                           \
  X(READ_BYTES, "read_bytes", 0)                       \
  X(WRITE_BYTES, "write_bytes", 0)                     \
  X(CANCELLED_WRITE_BYTES, "cancelled_write_bytes", 0) \
  X(MINOR_FAULTS, "faults_minor", 0)                   \
  X(MAJOR_FAULTS, "faults_major", 0)                   \
  X(DISK_USAGE, "du_kib", 0)                           \
  X(DEVICE_READS, "dev_reads", 0)                      \
  X(DEVICE_READ_SECTORS, "dev_read_sectors", 0)        \
  X(DEVICE_READ_MS, "dev_read_ms", 0)                  \
  X(DEVICE_WRITES, "dev_writes", 0)                    \
  X(DEVICE_WRITE_SECTORS, "dev_write_sectors", 0)      \
  X(DEVICE_WRITE_MS, "dev_write_ms", 0)                \
  X(DEVICE_IO_MS, "dev_io_ms", 0)                      \
  X(DEVICE_IN_FLIGHT, "dev_in_flight", 0)              \
  X(DEVICE_WEIGHTED_MS, "dev_weighted_ms", 0)          \
  X(DEVICE_FLUSHES, "dev_flushes", 0)                  \
  X(MEMORY_FREE, "mem_free_kib", 0)                    \
  X(MEMORY_AVAILABLE, "mem_available_kib", 0)          \
  X(MEMORY_CACHED, "mem_cached_kib", 0)                \
  X(MEMORY_DIRTY, "mem_dirty_kib", 0)                  \
  X(MEMORY_WRITEBACK, "mem_writeback_kib", 0)          \
  X(SWAP_FREE, "swap_free_kib", 0)                     \
  X(SWAP_IN, "swap_in_pages", 0)                       \
  X(SWAP_OUT, "swap_out_pages", 0)                     \
  X(PSI_CPU_SOME, "psi_cpu_some_us", 0)                \
  X(PSI_MEMORY_SOME, "psi_mem_some_us", 0)             \
  X(PSI_MEMORY_FULL, "psi_mem_full_us", 0)             \
  X(PSI_IO_SOME, "psi_io_some_us", 0)                  \
  X(PSI_IO_FULL, "psi_io_full_us", 0)                  \
  X(CPU_USER, "cpu_user_ticks", 0)                     \
  X(CPU_NICE, "cpu_nice_ticks", 0)                     \
  X(CPU_SYSTEM, "cpu_system_ticks", 0)                 \
  X(CPU_IDLE, "cpu_idle_ticks", 0)                     \
  X(CPU_IOWAIT, "cpu_iowait_ticks", 0)                 \
  X(CPU_IRQ, "cpu_irq_ticks", 0)                       \
  X(CPU_SOFTIRQ, "cpu_softirq_ticks", 0)               \
  X(CPU_STEAL, "cpu_steal_ticks", 0)                   \
  X(PROCS_RUNNING, "procs_running", 0)                 \
  X(LOAD1, "load1", 2)

#define COLUMN_IDENTIFIER(identifier, name, decimals) COLUMN_##identifier,
enum column { SAMPLE_COLUMNS(COLUMN_IDENTIFIER) COLUMN_COUNT };
#undef COLUMN_IDENTIFIER

// A cell that could not be read; written as nothing at all, never as 0.
#define MISSING INT64_MIN

struct sample {
  int64_t value[COLUMN_COUNT];
};

#endif
