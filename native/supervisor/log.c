#define _GNU_SOURCE
#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "clock.h"
#include "files.h"

static int log_fd = -1;

void log_to(int fd) { log_fd = fd; }

void log_line(const char* format, ...) {
  if (log_fd < 0) {
    return;
  }
  const int64_t now = clock_unix_ns();
  const time_t seconds = (time_t)(now / NS_PER_SECOND);
  struct tm utc;
  char date[32];
  gmtime_r(&seconds, &utc);
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &utc);

  char message[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);

  char line[1200];
  const int length = snprintf(line, sizeof line, "%s.%03dZ %s\n", date,
                              (int)(now % NS_PER_SECOND / NS_PER_MS), message);
  (void)write_fully(log_fd, line, (size_t)length);
}
