#define _GNU_SOURCE
#include "ours.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"
#include "front.h"
#include "mounts.h"
#include "text.h"

static const char* const kWords[] = {
    [OURS_DONE] = "done",         [OURS_ABSENT] = "absent",
    [OURS_SYMLINK] = "symlink",   [OURS_OUTSIDE] = "outside",
    [OURS_PRECIOUS] = "precious", [OURS_MOUNTED] = "mounted",
    [OURS_FOREIGN] = "foreign",   [OURS_FOREIGN_WORK] = "foreign-work-dir",
};

// Whether `path` is `directory` or lies below it. Both are canonical.
static bool is_within(const char* path, const char* directory) {
  const size_t length = strlen(directory);
  return strncmp(path, directory, length) == 0 &&
         (path[length] == '\0' || path[length] == '/' || strcmp(directory, "/") == 0);
}

static bool has_marker(int directory_fd) {
  struct stat s;
  return fstatat(directory_fd, MARKER_FILE, &s, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(s.st_mode);
}

static bool is_claimed(const char* directory) {
  const int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool claimed = fd >= 0 && has_marker(fd);
  if (fd >= 0) {
    close(fd);
  }
  return claimed;
}

static bool holds_home(const char* path) {
  const char* named = getenv("HOME");
  char* home = realpath(named == NULL || named[0] == '\0' ? "/" : named, NULL);
  const bool holds = home != NULL && is_within(home, path);
  free(home);
  return holds;
}

// --- Deleting. ---

static bool is_special(const char* name) {
  return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int delete_content(int fd, dev_t device, const char* spared);

// Returns 0 or an errno. A folder of another file system stays: rmdir says EBUSY of it.
static int delete_entry(int parent_fd, const char* name, dev_t device) {
  if (unlinkat(parent_fd, name, 0) == 0 || errno == ENOENT) {
    return 0;
  }
  if (errno != EISDIR && errno != EPERM) {
    return errno;
  }
  const int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) {
    return errno == ENOTDIR ? EPERM : errno;  // a file that may not be deleted
  }
  const int error = delete_content(fd, device, NULL);
  if (error != 0) {
    return error;
  }
  return unlinkat(parent_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : errno;
}

// Deletes what is in a folder but `spared`; closes the descriptor. Returns 0 or an errno.
static int delete_content(int fd, dev_t device, const char* spared) {
  struct stat s;
  if (fstat(fd, &s) != 0 || s.st_dev != device) {
    close(fd);
    return EXDEV;
  }
  DIR* directory = fdopendir(fd);
  if (directory == NULL) {
    const int error = errno;
    close(fd);
    return error;
  }
  int error = 0;
  const struct dirent* entry;
  while (error == 0 && (entry = readdir(directory)) != NULL) {
    if (!is_special(entry->d_name) && (spared == NULL || strcmp(entry->d_name, spared) != 0)) {
      error = delete_entry(fd, entry->d_name, device);
    }
  }
  closedir(directory);
  return error;
}

static enum our_verdict failed(int error) {
  errno = error;
  return OURS_ERROR;
}

// An open folder with our marker, and nothing mounted in it.
static enum our_verdict delete_marked(int fd, const char* real) {
  struct stat s;
  if (fstat(fd, &s) != 0) {
    return OURS_ERROR;
  }
  const int copy = dup(fd);
  const int error = copy < 0 ? errno : delete_content(copy, s.st_dev, MARKER_FILE);
  if (error != 0) {
    return failed(error);
  }
  if (unlinkat(fd, MARKER_FILE, 0) != 0 && errno != ENOENT) {
    return OURS_ERROR;
  }
  return rmdir(real) == 0 ? OURS_DONE : OURS_ERROR;
}

// A canonical folder that is inside a claimed directory.
static enum our_verdict remove_inside(const char* real) {
  const int fd = open(real, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) {
    return OURS_ERROR;
  }
  enum our_verdict verdict;
  if (!has_marker(fd)) {
    verdict = rmdir(real) == 0 ? OURS_DONE : OURS_FOREIGN;  // an empty one needs no marker
  } else if (mounts_within(real)) {
    verdict = OURS_MOUNTED;
  } else {
    verdict = delete_marked(fd, real);
  }
  const int error = errno;
  close(fd);
  errno = error;
  return verdict;
}

static enum our_verdict check_place(const char* work, const char* real) {
  if (strcmp(work, real) == 0 || !is_within(real, work)) {
    return OURS_OUTSIDE;
  }
  if (holds_home(real)) {
    return OURS_PRECIOUS;
  }
  return is_claimed(work) ? OURS_DONE : OURS_FOREIGN_WORK;
}

// A folder that is there. Both paths are made canonical first.
static enum our_verdict remove_present(const struct our_folder* folder) {
  char* work = realpath(folder->work, NULL);
  char* real = work == NULL ? NULL : realpath(folder->path, NULL);
  enum our_verdict verdict = OURS_ERROR;
  if (real != NULL) {
    verdict = check_place(work, real);
    if (verdict == OURS_DONE) {
      verdict = remove_inside(real);
    }
  }
  const int error = errno;
  free(work);
  free(real);
  errno = error;
  return verdict;
}

enum our_verdict ours_remove(const struct our_folder* folder) {
  struct stat s;
  if (lstat(folder->path, &s) != 0) {
    return errno == ENOENT ? OURS_ABSENT : OURS_ERROR;
  }
  return S_ISLNK(s.st_mode) ? OURS_SYMLINK : remove_present(folder);
}

// --- Making. ---

// mkdir -p. Returns 0 or an errno.
static int make_folders(const char* path) {
  char* copy = checked_strdup(path);
  int error = 0;
  for (char* slash = copy; error == 0 && (slash = strchr(slash + 1, '/')) != NULL;) {
    *slash = '\0';
    error = mkdir(copy, 0777) == 0 || errno == EEXIST ? 0 : errno;
    *slash = '/';
  }
  if (error == 0 && mkdir(copy, 0777) != 0) {
    struct stat s;
    const bool is_there = errno == EEXIST && stat(copy, &s) == 0 && S_ISDIR(s.st_mode);
    error = is_there ? 0 : errno;
  }
  free(copy);
  return error;
}

static int write_marker(const char* folder, const char* content) {
  const int directory_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory_fd < 0) {
    return errno;
  }
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const int fd = openat(directory_fd, MARKER_FILE, flags, 0666);
  int error = fd < 0 ? errno : 0;
  if (error == 0) {
    error = write_fully(fd, content, strlen(content));
  }
  if (error == 0) {
    error = write_fully(fd, "\n", 1);
  }
  if (fd >= 0 && close(fd) != 0 && error == 0) {
    error = errno;
  }
  close(directory_fd);
  return error;
}

// A folder that was not there a moment ago; a link on the way can lead it outside.
static enum our_verdict make_marked(const struct our_folder* folder, const char* marker) {
  int error = make_folders(folder->path);
  if (error != 0) {
    return failed(error);
  }
  char* work = realpath(folder->work, NULL);
  char* real = realpath(folder->path, NULL);
  enum our_verdict verdict = work == NULL || real == NULL ? OURS_ERROR : check_place(work, real);
  if (verdict == OURS_DONE) {
    error = write_marker(real, marker);
    verdict = error == 0 ? OURS_DONE : failed(error);
  } else if (real != NULL) {
    rmdir(real);
  }
  free(work);
  free(real);
  return verdict;
}

static enum our_verdict make_fresh(const struct our_folder* folder, const char* marker) {
  if (!is_claimed(folder->work)) {
    return OURS_FOREIGN_WORK;
  }
  const enum our_verdict verdict = ours_remove(folder);
  const bool gone = verdict == OURS_DONE || verdict == OURS_ABSENT;
  return gone ? make_marked(folder, marker) : verdict;
}

// --- The command line's side. ---

static int tell(enum our_verdict verdict, const char* path) {
  if (verdict == OURS_DONE || verdict == OURS_ABSENT) {
    return EXIT_OK;
  }
  if (verdict == OURS_ERROR) {
    fprintf(stderr, "br-supervise: %s: %s\n", path, strerror(errno));
    return EXIT_TROUBLE;
  }
  printf("%s %s\n", kWords[verdict], path);
  fprintf(stderr, "br-supervise: %s is not deleted: %s\n", path, kWords[verdict]);
  fflush(stdout);
  return EXIT_REFUSED;
}

int ours_fresh(const struct our_folders* folders) {
  for (size_t i = 0; i < folders->count; i++) {
    const struct our_folder* folder = &folders->items[i];
    const int exit_code = tell(make_fresh(folder, folders->marker), folder->path);
    if (exit_code != EXIT_OK) {
      return exit_code;
    }
  }
  for (const char* const* made = folders->inside; made != NULL && *made != NULL; made++) {
    errno = make_folders(*made);
    if (errno != 0) {
      return tell(OURS_ERROR, *made);
    }
  }
  return EXIT_OK;
}

int ours_remove_all(const struct our_folders* folders) {
  for (size_t i = 0; i < folders->count; i++) {
    const int exit_code = tell(ours_remove(&folders->items[i]), folders->items[i].path);
    if (exit_code != EXIT_OK) {
      return exit_code;
    }
  }
  return EXIT_OK;
}

int ours_lock(const struct our_folders* folders) {
  struct text path = {0};
  text_printf(&path, "%s/" MARKER_FILE, folders->items[0].work);
  const int fd = open(path.data, O_RDONLY | O_CLOEXEC);
  text_free(&path);
  if (fd < 0) {
    return -1;
  }
  while (flock(fd, LOCK_EX) != 0) {
    if (errno != EINTR) {
      const int error = errno;
      close(fd);
      errno = error;
      return -1;
    }
  }
  return fd;
}
