// Time, always in nanoseconds.

#ifndef BR_CLOCK_H_
#define BR_CLOCK_H_

#include <stdint.h>
#include <time.h>

#define NS_PER_SECOND INT64_C(1000000000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_US INT64_C(1000)

// For durations: never steps.
int64_t clock_monotonic_ns(void);

// For dates: since the Unix epoch, steps when the host's clock is set.
int64_t clock_unix_ns(void);

struct timespec clock_timespec(int64_t ns);

void clock_sleep_ns(int64_t ns);

#endif
