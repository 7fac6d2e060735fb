// A request of `serve`, read from its line.

#ifndef BR_SERVE_REQUESTS_H_
#define BR_SERVE_REQUESTS_H_

#include <stdint.h>

enum demand_kind { DEMAND_RUN, DEMAND_READ, DEMAND_SIZE, DEMAND_WAIT, DEMAND_CANCEL };

struct demand {
  int64_t id;
  enum demand_kind kind;
  char* path;          // read, size, wait
  char** argv;         // run; NULL-terminated
  char** env;          // run; NULL-terminated NAME=VALUE, added to our own
  char* cwd;           // run; NULL = ours
  int64_t timeout_ns;  // run, wait; < 0 = none
  int64_t offset;      // read
  int64_t limit;       // read; < 0 = none
  int64_t target;      // cancel
};

// Returns NULL, or what is wrong with the line. The caller frees the demand in every case.
const char* demand_read(const char* line, struct demand* out);
void demand_free(struct demand* demand);

#endif
