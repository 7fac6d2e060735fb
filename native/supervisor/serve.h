// The command line's `serve`: requests on stdin, answers on stdout, many at a time, for a
// controller that reaches this host through one long connection. README.md has the frames.

#ifndef BR_SERVE_H_
#define BR_SERVE_H_

// Returns the exit code when stdin has ended or a frame makes no sense. Commands that run
// then are killed; runs that were started under a supervisor go on.
int serve_command(void);

#endif
