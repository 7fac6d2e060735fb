#define _GNU_SOURCE
#include "clock.h"

static int64_t read_clock(clockid_t id) {
  struct timespec t;
  clock_gettime(id, &t);
  return (int64_t)t.tv_sec * NS_PER_SECOND + t.tv_nsec;
}

int64_t clock_monotonic_ns(void) { return read_clock(CLOCK_MONOTONIC); }

int64_t clock_unix_ns(void) { return read_clock(CLOCK_REALTIME); }

struct timespec clock_timespec(int64_t ns) {
  return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_SECOND),
                           .tv_nsec = (long)(ns % NS_PER_SECOND)};
}

void clock_sleep_ns(int64_t ns) {
  struct timespec t = clock_timespec(ns);
  nanosleep(&t, NULL);
}
