#define _GNU_SOURCE
#include "lease_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "files.h"
#include "json.h"

enum { PAGE_BYTES = 4096 };

static const int64_t kMostWaitNs = 10 * NS_PER_SECOND;
static const int64_t kMostFence = INT64_MAX / 2;

static int64_t clock_boot_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_BOOTTIME, &t);
  return (int64_t)t.tv_sec * NS_PER_SECOND + t.tv_nsec;
}

const char* lease_default_path(void) {
  struct stat s;
  const bool usual = stat("/run/lock", &s) == 0 && S_ISDIR(s.st_mode);
  return usual ? "/run/lock/benchrunner.lease" : "/tmp/benchrunner.lease";
}

// --- Opening. ---

// First without O_CREAT: with it, the kernel lets nobody open a file of another user in a folder
// that all may write to (fs.protected_regular). EAGAIN: somebody else is making it.
static int open_or_create(const char* path, bool create) {
  const int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  int fd = open(path, flags);
  if (fd >= 0 || errno != ENOENT || !create) {
    return fd;
  }
  const mode_t mask = umask(0);  // there is no moment in which other users could not open it
  fd = open(path, flags | O_CREAT | O_EXCL, 0666);
  const int error = errno;
  umask(mask);
  if (fd >= 0) {
    (void)fchmod(fd, 0666);  // where the folder has rules of its own for new files
  }
  errno = error == EEXIST ? EAGAIN : error;
  return fd;
}

// A second name would let somebody have another user's file overwritten.
static int check_kind(int fd) {
  struct stat s;
  if (fstat(fd, &s) != 0) {
    return errno;
  }
  return !S_ISREG(s.st_mode) ? EISDIR : s.st_nlink > 1 ? EMLINK : 0;
}

// Whoever holds it does so for milliseconds, unless it is frozen.
static int lock(int fd) {
  const int64_t limit_ns = clock_monotonic_ns() + kMostWaitNs;
  while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return errno;
    }
    if (clock_monotonic_ns() > limit_ns) {
      return EBUSY;
    }
    clock_sleep_ns(NS_PER_MS);
  }
  return 0;
}

// Not when it was deleted, or replaced, while we waited for it.
static bool is_still_there(const struct lease_file* file) {
  struct stat opened, named;
  return fstat(file->fd, &opened) == 0 && lstat(file->path, &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

static int open_and_lock(struct lease_file* file, bool create) {
  file->fd = open_or_create(file->path, create);
  if (file->fd < 0) {
    return errno;
  }
  int error = check_kind(file->fd);
  if (error == 0) {
    error = lock(file->fd);
  }
  if (error == 0 && !is_still_there(file)) {
    error = EAGAIN;
  }
  if (error != 0) {
    lease_close(file);
  }
  return error;
}

int lease_open(struct lease_file* file, const char* path, bool create) {
  *file = (struct lease_file){.path = path, .fd = -1};
  int error = EAGAIN;
  for (int attempt = 0; error == EAGAIN && attempt < 1000; attempt++) {
    error = open_and_lock(file, create);
  }
  if (error != 0) {
    return error;
  }
  host_read(&file->host);
  file->now_ns = clock_boot_ns();
  struct stat s;
  if (fstat(file->fd, &s) == 0) {
    const int64_t changed_ns = (int64_t)s.st_mtim.tv_sec * NS_PER_SECOND + s.st_mtim.tv_nsec;
    const int64_t age_ns = clock_unix_ns() - changed_ns;
    file->unchanged_ns = age_ns < 0 ? -age_ns : age_ns;  // a clock that was set back must not bar
  }
  return 0;
}

const char* lease_error(int error) {
  switch (error) {
    case ELOOP:
      return "it is a symbolic link";
    case EISDIR:
      return "it is not a regular file";
    case EMLINK:
      return "the file has a second name";
    case E2BIG:
      return "its texts are too long";
    case EBUSY:
      return "another process has had it locked for 10 seconds";
    default:
      return strerror(error);
  }
}

void lease_unlock(const struct lease_file* file) { (void)flock(file->fd, LOCK_UN); }

void lease_close(struct lease_file* file) {
  if (file->fd >= 0) {
    close(file->fd);
  }
  file->fd = -1;
}

// --- Reading and writing. ---

static bool read_texts(const char* json, struct lease* l) {
  return json_string(json_member(json, "owner"), &l->owner) &&
         json_string(json_member(json, "store"), &l->store) &&
         json_string(json_member(json, "about"), &l->about) &&
         json_string(json_member(json, "process"), &l->process) &&
         json_string(json_member(json, "run_dir"), &l->run_dir) &&
         json_string(json_member(json, "boot_id"), &l->boot_id);
}

static bool read_numbers(const char* json, struct lease* l) {
  l->fence = json_int(json_member(json, "fence"), 0);
  l->since_unix_ns = json_int(json_member(json, "since_unix_ns"), JSON_UNKNOWN);
  l->heartbeat_ns = json_int(json_member(json, "heartbeat_ns"), -1);
  l->stale_ns = json_int(json_member(json, "stale_ns"), -1);
  return l->fence > 0 && l->fence < kMostFence && l->heartbeat_ns >= 0 && l->stale_ns >= 0;
}

static bool read_state(const char* json, struct lease* l) {
  struct text word = {0};
  const bool known = json_string(json_member(json, "state"), &word);
  l->state = strcmp(text_string(&word), "held") == 0       ? LEASE_HELD
             : strcmp(text_string(&word), "released") == 0 ? LEASE_RELEASED
                                                           : LEASE_UNREADABLE;
  text_free(&word);
  return known && l->state != LEASE_UNREADABLE;
}

static bool parse(const struct lease_file* file, const char* json, struct lease* l) {
  if (!json_is_object(json) || !read_state(json, l) || !read_texts(json, l) ||
      !read_numbers(json, l)) {
    return false;
  }
  // Nobody's heart has beaten in the future.
  return strcmp(text_string(&l->boot_id), file->host.boot_id) != 0 ||
         l->heartbeat_ns <= file->now_ns;
}

int lease_read(const struct lease_file* file, struct lease* out) {
  *out = (struct lease){.state = LEASE_FREE};
  char line[PAGE_BYTES + 1];
  const ssize_t n = pread(file->fd, line, PAGE_BYTES, 0);
  if (n < 0) {
    return errno;
  }
  if (n == 0) {
    return 0;
  }
  line[n] = '\0';
  char* end = memchr(line, '\n', (size_t)n);
  if (end != NULL) {
    *end = '\0';  // behind it there may be the end of a longer line that was overwritten
  }
  if (end == NULL || strlen(line) != (size_t)(end - line) || !parse(file, line, out)) {
    lease_free(out);
    *out = (struct lease){.state = LEASE_UNREADABLE};
  }
  return 0;
}

void lease_free(struct lease* l) {
  text_free(&l->owner);
  text_free(&l->store);
  text_free(&l->about);
  text_free(&l->process);
  text_free(&l->run_dir);
  text_free(&l->boot_id);
}

static void format(const struct lease* l, const char* run_dir, struct text* t) {
  text_clear(t);
  json_open(t, NULL, '{');
  json_add_string(t, "state", l->state == LEASE_HELD ? "held" : "released");
  json_add_string(t, "owner", text_string(&l->owner));
  json_add_int(t, "fence", l->fence);
  json_add_string(t, "store", text_string(&l->store));
  json_add_string(t, "about", text_string(&l->about));
  json_add_string(t, "process", text_string(&l->process));
  json_add_string(t, "run_dir", run_dir);
  json_add_string(t, "boot_id", text_string(&l->boot_id));
  json_add_int(t, "since_unix_ns", l->since_unix_ns);
  json_add_int(t, "heartbeat_ns", l->heartbeat_ns);
  json_add_int(t, "stale_ns", l->stale_ns);
  json_close(t, '}');
  text_append(t, "\n", 1);
}

static int overwrite(int fd, const struct text* content) {
  if (lseek(fd, 0, SEEK_SET) != 0) {
    return errno;
  }
  const int error = write_fully(fd, content->data, content->length);
  if (error != 0) {
    return error;
  }
  return ftruncate(fd, (off_t)content->length) == 0 ? 0 : errno;
}

int lease_write(const struct lease_file* file, const struct lease* lease, bool durable) {
  struct text t = {0};
  format(lease, text_string(&lease->run_dir), &t);
  if (t.length > PAGE_BYTES) {
    format(lease, "", &t);  // it is for people only
  }
  int error = t.length > PAGE_BYTES ? E2BIG : overwrite(file->fd, &t);
  if (error == 0 && durable && fsync(file->fd) != 0) {
    error = errno;
  }
  text_free(&t);
  return error;
}

// --- What runs under the lease: a lock that belongs to the open file, not to a process. ---

int lease_mark_running(const struct lease_file* file) {
  struct flock range = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_len = 1};
  return fcntl(file->fd, F_OFD_SETLK, &range) == 0 ? 0 : errno;
}

bool lease_is_running(const struct lease_file* file) {
  struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
  // What cannot be found out must not be taken for rest.
  return fcntl(file->fd, F_OFD_GETLK, &range) != 0 || range.l_type != F_UNLCK;
}
