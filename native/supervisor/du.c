#define _GNU_SOURCE
#include "du.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text.h"

static const unsigned kEntriesPerInterruptCheck = 64;

void du_begin(struct du* du, bool remember_everything) {
  *du = (struct du){.remember_everything = remember_everything};
}

void du_end(struct du* du) {
  free(du->seen);
  du->seen = NULL;
}

static struct inode_id* find_slot(const struct du* du, struct inode_id id) {
  size_t i = (size_t)((id.inode ^ (id.device << 32)) * UINT64_C(0x9e3779b97f4a7c15) >> 17);
  for (;; i++) {
    struct inode_id* slot = &du->seen[i & (du->seen_capacity - 1)];
    if ((slot->inode == 0 && slot->device == 0) ||
        (slot->inode == id.inode && slot->device == id.device)) {
      return slot;
    }
  }
}

static void grow_seen(struct du* du) {
  struct du larger = *du;
  larger.seen_capacity = du->seen_capacity == 0 ? 256 : 2 * du->seen_capacity;
  larger.seen = checked_realloc(NULL, larger.seen_capacity * sizeof *larger.seen);
  memset(larger.seen, 0, larger.seen_capacity * sizeof *larger.seen);
  for (size_t i = 0; i < du->seen_capacity; i++) {
    if (du->seen[i].inode != 0 || du->seen[i].device != 0) {
      *find_slot(&larger, du->seen[i]) = du->seen[i];
    }
  }
  free(du->seen);
  *du = larger;
}

// True when it had not been seen before.
static bool remember(struct du* du, const struct stat* s) {
  if (2 * du->seen_count >= du->seen_capacity) {
    grow_seen(du);
  }
  const struct inode_id id = {s->st_dev, s->st_ino};
  struct inode_id* slot = find_slot(du, id);
  if (slot->inode != 0 || slot->device != 0) {
    return false;
  }
  *slot = id;
  du->seen_count++;
  return true;
}

// Counts one file or directory. False when it was counted before.
static bool count(struct du* du, const struct stat* s) {
  const bool may_return = du->remember_everything || (!S_ISDIR(s->st_mode) && s->st_nlink > 1);
  if (may_return && !remember(du, s)) {
    return false;
  }
  du->blocks += (uint64_t)s->st_blocks;
  return true;
}

static void note_error(struct du* du, int error) {
  if (error != ENOENT && du->error == 0) {
    du->error = error;
  }
}

static bool is_interrupted(struct du* du) {
  if (du->interrupt != NULL && ++du->entries % kEntriesPerInterruptCheck == 0) {
    du->interrupted = du->interrupted || du->interrupt(du->context);
  }
  return du->interrupted;
}

static void walk_contents(struct du* du, int parent_fd, const char* name, int follow);

static void walk_entry(struct du* du, int parent_fd, const char* name) {
  struct stat s;
  if (fstatat(parent_fd, name, &s, AT_SYMLINK_NOFOLLOW) != 0) {
    note_error(du, errno);
  } else if (count(du, &s) && S_ISDIR(s.st_mode)) {
    walk_contents(du, parent_fd, name, O_NOFOLLOW);
  }
}

static void walk_contents(struct du* du, int parent_fd, const char* name, int follow) {
  const int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | follow);
  DIR* directory = fd < 0 ? NULL : fdopendir(fd);
  if (directory == NULL) {
    note_error(du, errno);
    if (fd >= 0) {
      close(fd);
    }
    return;
  }
  const struct dirent* entry;
  while (!is_interrupted(du) && (entry = readdir(directory)) != NULL) {
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
      walk_entry(du, fd, entry->d_name);
    }
  }
  closedir(directory);
}

int du_directory(struct du* du, const char* directory, int64_t* kib) {
  struct stat s;
  if (stat(directory, &s) != 0) {
    return errno;
  }
  du->blocks = 0;
  if (!count(du, &s)) {
    return EEXIST;
  }
  if (S_ISDIR(s.st_mode)) {
    walk_contents(du, AT_FDCWD, directory, 0);
  }
  *kib = (int64_t)((du->blocks + 1) / 2);
  return du->interrupted ? EINTR : 0;
}
