// The supervisor's own log: a line with date and text per event.

#ifndef BR_LOG_H_
#define BR_LOG_H_

// Messages go to the descriptor from now on, until then nowhere.
void log_to(int fd);

__attribute__((format(printf, 1, 2))) void log_line(const char* format, ...);

#endif
