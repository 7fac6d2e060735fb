#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "du.h"

int du_command(char* const* directories, size_t count) {
  struct du du;
  du_begin(&du, count > 1);
  int exit_code = 0;
  for (size_t i = 0; i < count; i++) {
    int64_t kib;
    const int error = du_directory(&du, directories[i], &kib);
    if (error == 0) {
      printf("%" PRId64 "\t%s\n", kib, directories[i]);
    } else if (error == EEXIST) {
      continue;  // du does not print a directory twice either
    }
    const int problem = error != 0 ? error : du.error;
    if (problem != 0) {
      fprintf(stderr, "br-supervise: cannot read %s%s: %s\n", error != 0 ? "" : "all of ",
              directories[i], strerror(problem));
      exit_code = 1;
    }
    du.error = 0;
  }
  du_end(&du);
  return exit_code;
}
