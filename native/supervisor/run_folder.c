#define _GNU_SOURCE
#include "run_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "files.h"
#include "json.h"

static const size_t kStatusReserve = 4096;  // a status is about 1000 bytes

int folder_open(struct run_folder* folder, const char* path) {
  folder->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return folder->fd < 0 ? errno : 0;
}

void folder_close(struct run_folder* folder) {
  if (folder->fd >= 0) {
    close(folder->fd);
  }
  folder->fd = -1;
}

// Overwrites in place, so that space which the draft already has is enough.
static int write_draft(const struct run_folder* folder, const char* draft,
                       const struct text* content, bool durable) {
  const int fd = openat(folder->fd, draft, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) {
    return errno;
  }
  int error = write_fully(fd, content->data, content->length);
  if (error == 0 && ftruncate(fd, (off_t)content->length) != 0) {
    error = errno;
  }
  if (error == 0 && durable && fsync(fd) != 0) {
    error = errno;
  }
  if (close(fd) != 0 && error == 0) {
    error = errno;  // NFS reports a full disk as late as this
  }
  return error;
}

static int rename_unless_exists(int fd, const char* from, const char* to) {
#if defined(SYS_renameat2) && defined(RENAME_NOREPLACE)
  if (syscall(SYS_renameat2, fd, from, fd, to, RENAME_NOREPLACE) == 0) {
    return 0;
  }
  if (errno != EINVAL && errno != ENOSYS) {
    return errno;
  }
#endif
  // NFS and others cannot do that, but a new link never replaces a file.
  if (linkat(fd, from, fd, to, 0) != 0) {
    return errno;
  }
  unlinkat(fd, from, 0);
  return 0;
}

int folder_publish(const struct run_folder* folder, const char* draft, const char* name,
                   const struct text* content, bool durable) {
  int error = write_draft(folder, draft, content, durable);
  if (error == 0) {
    error = rename_unless_exists(folder->fd, draft, name);
  }
  if (error == 0 && durable && fsync(folder->fd) != 0 && errno != EINVAL) {
    error = errno;
  }
  return error;
}

int folder_reserve_status(const struct run_folder* folder) {
  struct text filler = {0};
  while (filler.length < kStatusReserve) {
    text_append_string(&filler, "reserved for status.json\n");
  }
  filler.length = kStatusReserve;
  const int error = write_draft(folder, STATUS_RESERVE_FILE, &filler, false);
  text_free(&filler);
  return error;
}

int folder_open_output(const struct run_folder* folder, const char* name) {
  const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC;
  return openat(folder->fd, name, flags, 0666);
}

int64_t folder_file_size(const struct run_folder* folder, const char* name) {
  struct stat s;
  return fstatat(folder->fd, name, &s, 0) == 0 ? s.st_size : JSON_UNKNOWN;
}

int folder_lock(const struct run_folder* folder) {
  int result;
  do {
    result = flock(folder->fd, LOCK_EX);
  } while (result != 0 && errno == EINTR);
  return result == 0 ? 0 : errno;
}
