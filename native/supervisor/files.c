#define _GNU_SOURCE
#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

ssize_t read_file(const char* path, char* buffer, size_t size) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return -1;
  }
  size_t length = 0;
  ssize_t n = 0;
  while (length + 1 < size && (n = read(fd, buffer + length, size - 1 - length)) > 0) {
    length += (size_t)n;
  }
  const int error = errno;
  close(fd);
  errno = error;
  buffer[length] = '\0';
  return n < 0 ? -1 : (ssize_t)length;
}

ssize_t read_again(int fd, char* buffer, size_t size) {
  const ssize_t n = fd < 0 ? -1 : pread(fd, buffer, size - 1, 0);
  buffer[n < 0 ? 0 : n] = '\0';
  return n;
}

int read_whole_file(int directory_fd, const char* name, struct text* out) {
  const int fd = openat(directory_fd, name, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return errno;
  }
  char chunk[4096];
  ssize_t n;
  while ((n = read(fd, chunk, sizeof chunk)) > 0) {
    text_append(out, chunk, (size_t)n);
  }
  const int error = n < 0 ? errno : 0;
  close(fd);
  return error;
}

int write_fully(int fd, const char* data, size_t length) {
  while (length > 0) {
    const ssize_t n = write(fd, data, length);
    if (n < 0 && errno != EINTR) {
      return errno;
    }
    if (n > 0) {
      data += n;
      length -= (size_t)n;
    }
  }
  return 0;
}

void silence_standard_streams(void) {
  const int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    return;
  }
  for (int standard = 0; standard <= 2; standard++) {
    dup2(fd, standard);
  }
  if (fd > 2) {
    close(fd);
  }
}

void sanitize_descriptors(void) {
  int fd;
  do {
    fd = open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd <= 2);

  // Listed in /proc rather than counted up to the limit, which can be a billion.
  DIR* directory = opendir("/proc/self/fd");
  if (directory == NULL) {
    return;
  }
  const struct dirent* entry;
  while ((entry = readdir(directory)) != NULL) {
    const int inherited = atoi(entry->d_name);
    if (inherited > 2 && inherited != dirfd(directory)) {
      close(inherited);
    }
  }
  closedir(directory);
}
