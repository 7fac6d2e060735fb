// What PerconaFT takes from the server's header of this name.
#pragma once

#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define HAVE_SCHED_YIELD 1

typedef long long longlong;
typedef unsigned long long ulonglong;
