#define _GNU_SOURCE
#include "front.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "files.h"
#include "text.h"

static void print(int exit_code, const char* message) {
  FILE* stream = exit_code == EXIT_OK ? stdout : stderr;
  fprintf(stream, "%s%s\n", exit_code == EXIT_OK ? "" : "br-supervise: ", message);
  fflush(stream);
}

int front_tell(struct front* front, int exit_code, const char* message) {
  if (front->pipe < 0) {
    print(exit_code, message);
    return exit_code;
  }
  struct text t = {0};
  text_printf(&t, "%c%s", '0' + exit_code, message);
  (void)write_fully(front->pipe, t.data, t.length);  // the caller may have gone
  text_free(&t);
  close(front->pipe);
  return exit_code;
}

int front_wait(int pipe) {
  struct text t = {0};
  char chunk[1024];
  ssize_t n;
  while ((n = read(pipe, chunk, sizeof chunk)) != 0) {
    if (n > 0) {
      text_append(&t, chunk, (size_t)n);
    } else if (errno != EINTR) {
      break;
    }
  }
  int exit_code = EXIT_TROUBLE;
  if (t.length == 0) {
    print(exit_code, "the supervisor ended before the command was started");
  } else {
    exit_code = t.data[0] - '0';
    print(exit_code, t.data + 1);
  }
  text_free(&t);
  return exit_code;
}
