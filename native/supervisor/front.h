// The way back from the supervisor to the process that the caller started and waits for.

#ifndef BR_FRONT_H_
#define BR_FRONT_H_

enum {
  EXIT_OK = 0,
  EXIT_TROUBLE = 1,
  EXIT_USAGE = 2,
  EXIT_TAKEN = 3,
  EXIT_REFUSED = 4,
  EXIT_HELD = 5,
};

struct front {
  int pipe;  // -1 = this is that process
};

// Tells the caller's process what to print and with which code to end. A message with
// EXIT_OK goes to stdout, any other to stderr. Only the first call counts.
// Returns the code.
int front_tell(struct front* front, int exit_code, const char* message);

// The other end: waits for that, prints it and returns the code.
int front_wait(int pipe);

#endif
