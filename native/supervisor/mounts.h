// Mount points, from /proc/self/mountinfo.

#ifndef BR_MOUNTS_H_
#define BR_MOUNTS_H_

#include <stdbool.h>

// Whether something is mounted on a canonical directory or below it. When that cannot be
// found out the answer is yes.
bool mounts_within(const char* directory);

#endif
