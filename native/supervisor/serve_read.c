#define _GNU_SOURCE
#include "serve_read.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "json.h"

enum { PART_BYTES = 256 << 10 };

static void answer_errno(struct wire* wire, int64_t id, int error) {
  answer_error(wire, id, error == ENOENT ? "missing" : "os", strerror(error));
}

bool read_begin(struct read_job* job, const struct demand* demand, struct wire* wire) {
  *job = (struct read_job){.left = demand->limit};
  job->fd = open(demand->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (job->fd >= 0 && (demand->offset == 0 || lseek(job->fd, demand->offset, SEEK_SET) >= 0)) {
    return true;
  }
  answer_errno(wire, demand->id, errno);
  read_free(job);
  return false;
}

void read_free(struct read_job* job) {
  if (job->fd >= 0) {
    close(job->fd);
  }
  job->fd = -1;
}

void read_watch(const struct read_job* job, struct poll_set* set, bool bulk) {
  if (bulk && job->fd >= 0) {
    poll_wake_by(set, 0);  // a file is always ready
  }
}

// As much as asked for or as there is, for files of /proc give less at a time. Returns the
// length or -1 with errno.
static ssize_t read_part(int fd, char* part, size_t most, bool* ended) {
  size_t length = 0;
  while (length < most) {
    const ssize_t n = read(fd, part + length, most - length);
    if (n < 0 && errno != EINTR) {
      return -1;
    }
    if (n == 0) {
      *ended = true;
      break;
    }
    length += n < 0 ? 0 : (size_t)n;
  }
  return (ssize_t)length;
}

bool read_advance(struct read_job* job, int64_t id, bool bulk, struct wire* wire) {
  if (!bulk) {
    return false;
  }
  char part[PART_BYTES];
  const bool is_rest = job->left >= 0 && job->left <= PART_BYTES;
  const size_t most = is_rest ? (size_t)job->left : sizeof part;
  bool ended = is_rest;
  const ssize_t length = read_part(job->fd, part, most, &ended);
  if (length < 0) {
    answer_errno(wire, id, errno);
    return true;
  }
  struct text answer = {0};
  answer_open(&answer, id);
  if (!ended) {
    json_add_bool(&answer, "more", true);
  }
  json_add_int(&answer, "bytes", length);
  answer_send(wire, &answer);
  wire_append(wire, part, (size_t)length);
  if (job->left >= 0) {
    job->left -= length;
  }
  return ended;
}

void answer_size(const struct demand* demand, struct wire* wire) {
  struct stat s;
  const int error = stat(demand->path, &s) == 0 ? 0 : errno;
  if (error != 0 && error != ENOENT && error != ENOTDIR) {
    answer_error(wire, demand->id, "os", strerror(error));
    return;
  }
  struct text answer = {0};
  answer_open(&answer, demand->id);
  json_add_int(&answer, "size", error == 0 ? s.st_size : JSON_UNKNOWN);
  answer_send(wire, &answer);
}
