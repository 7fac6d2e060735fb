#define _GNU_SOURCE
#include "pack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"
#include "front.h"
#include "json.h"
#include "text.h"

struct packed {
  char* name;
  int fd;
  int64_t size;
};

struct pack {
  struct packed* files;
  size_t count;
  int64_t bytes;
  bool plain;  // nothing but regular files
};

static int complain(const char* path, int error) {
  fprintf(stderr, "br-supervise: cannot read %s: %s\n", path, strerror(error));
  return EXIT_TROUBLE;
}

// Returns 0 or an errno. A file that is not a plain one is not opened: it could block.
static int add(struct pack* pack, int directory_fd, const char* name) {
  struct stat s;
  if (fstatat(directory_fd, name, &s, AT_SYMLINK_NOFOLLOW) != 0) {
    return errno;
  }
  if (!S_ISREG(s.st_mode)) {
    pack->plain = false;
    return 0;
  }
  const int fd = openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) {
    return errno;
  }
  pack->files = checked_realloc(pack->files, (pack->count + 1) * sizeof *pack->files);
  pack->files[pack->count++] =
      (struct packed){.name = checked_strdup(name), .fd = fd, .size = s.st_size};
  pack->bytes += s.st_size;
  return 0;
}

static bool is_special(const char* name) {
  return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int by_name(const void* a, const void* b) {
  return strcmp(((const struct packed*)a)->name, ((const struct packed*)b)->name);
}

// Returns 0 or an errno.
static int add_all(struct pack* pack, const char* path) {
  DIR* directory = opendir(path);
  if (directory == NULL) {
    return errno;
  }
  int error = 0;
  const struct dirent* entry;
  while (error == 0 && (entry = readdir(directory)) != NULL) {
    if (!is_special(entry->d_name)) {
      error = add(pack, dirfd(directory), entry->d_name);
    }
  }
  closedir(directory);
  if (pack->count > 0) {
    qsort(pack->files, pack->count, sizeof *pack->files, by_name);
  }
  return error;
}

// OPTIONS-000010 is newer than OPTIONS-000009, and than OPTIONS-9.
static bool is_newer(const char* name, const char* than) {
  const size_t length = strlen(name), other = strlen(than);
  return length != other ? length > other : strcmp(name, than) > 0;
}

// The name of the newest matching file, to be freed; NULL when there is none. A directory
// that cannot be listed is an error.
static int find_newest(const struct pack_request* request, char** newest) {
  DIR* directory = opendir(request->newest_in);
  if (directory == NULL) {
    return errno;
  }
  const struct dirent* entry;
  while ((entry = readdir(directory)) != NULL) {
    struct stat s;
    if (fnmatch(request->glob, entry->d_name, FNM_PERIOD) == 0 &&
        fstatat(dirfd(directory), entry->d_name, &s, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(s.st_mode) && (*newest == NULL || is_newer(entry->d_name, *newest))) {
      free(*newest);
      *newest = checked_strdup(entry->d_name);
    }
  }
  closedir(directory);
  return 0;
}

static int add_newest(struct pack* pack, const struct pack_request* request, char** newest) {
  int error = find_newest(request, newest);
  if (error != 0 || *newest == NULL) {
    return error;
  }
  const int fd = open(request->newest_in, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    return errno;
  }
  error = add(pack, fd, *newest);
  close(fd);
  return error;
}

static void print_line(const struct pack* pack, bool sent, const char* newest) {
  struct text t = {0};
  json_open(&t, NULL, '{');
  json_add_bool(&t, "sent", sent);
  json_add_bool(&t, "plain", pack->plain);
  json_add_int(&t, "bytes", pack->bytes);
  json_add_string(&t, "newest", newest);  // the last of the files
  json_open(&t, "files", '[');
  for (size_t i = 0; i < pack->count; i++) {
    json_open(&t, NULL, '{');
    json_add_string(&t, "name", pack->files[i].name);
    json_add_int(&t, "size", pack->files[i].size);
    json_close(&t, '}');
  }
  json_close(&t, ']');
  json_close(&t, '}');
  text_append(&t, "\n", 1);
  fwrite(t.data, 1, t.length, stdout);
  text_free(&t);
}

// Exactly as many bytes as were promised. Returns 0 or an errno.
static int send_file(const struct packed* file) {
  char chunk[1 << 16];
  int64_t left = file->size;
  while (left > 0) {
    const size_t wanted = left < (int64_t)sizeof chunk ? (size_t)left : sizeof chunk;
    const ssize_t n = read(file->fd, chunk, wanted);
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n <= 0) {
      return n < 0 ? errno : EIO;  // it became shorter
    }
    fwrite(chunk, 1, (size_t)n, stdout);
    left -= n;
  }
  return 0;
}

static int send(const struct pack* pack) {
  for (size_t i = 0; i < pack->count; i++) {
    const int error = send_file(&pack->files[i]);
    if (error != 0) {
      return complain(pack->files[i].name, error);
    }
  }
  return fflush(stdout) == 0 ? EXIT_OK : EXIT_TROUBLE;
}

static void free_pack(struct pack* pack) {
  for (size_t i = 0; i < pack->count; i++) {
    close(pack->files[i].fd);
    free(pack->files[i].name);
  }
  free(pack->files);
}

int pack_command(const struct pack_request* request) {
  struct pack pack = {.plain = true};
  char* newest = NULL;
  int exit_code;
  int error = add_all(&pack, request->run_dir);
  if (error != 0) {
    exit_code = complain(request->run_dir, error);
  } else if (request->newest_in != NULL && (error = add_newest(&pack, request, &newest)) != 0) {
    exit_code = complain(request->newest_in, error);
  } else {
    const bool sent = pack.plain && pack.bytes <= request->limit_bytes;
    print_line(&pack, sent, newest);
    exit_code = sent ? send(&pack) : EXIT_OK;
  }
  free_pack(&pack);
  free(newest);
  return exit_code;
}
