#define _GNU_SOURCE
#include "listener.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files.h"
#include "text.h"

enum { LISTENING = 0x0A };  // TCP_LISTEN, as /proc/net/tcp has it

// The inode of the socket that listens; 0 when none does.
static uint64_t listening_inode(const char* table, int port) {
  struct text content = {0};
  uint64_t found = 0;
  if (read_whole_file(AT_FDCWD, table, &content) != 0 || content.length == 0) {
    text_free(&content);
    return 0;
  }
  char* rest = NULL;
  for (char* line = strtok_r(content.data, "\n", &rest); line != NULL && found == 0;
       line = strtok_r(NULL, "\n", &rest)) {
    unsigned local_port, state;
    uint64_t inode;
    if (sscanf(line, " %*u: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x %*s %*s %*s %*u %*u %" SCNu64,
               &local_port, &state, &inode) == 3 &&
        state == LISTENING && local_port == (unsigned)port) {
      found = inode;
    }
  }
  text_free(&content);
  return found;
}

static bool holds(const char* pid, const char* socket) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%.20s/fd", pid);
  DIR* files = opendir(path);
  if (files == NULL) {
    return false;
  }
  bool found = false;
  const struct dirent* entry;
  while (!found && (entry = readdir(files)) != NULL) {
    char target[64];
    const ssize_t n = readlinkat(dirfd(files), entry->d_name, target, sizeof target - 1);
    if (n > 0) {
      target[n] = '\0';
      found = strcmp(target, socket) == 0;
    }
  }
  closedir(files);
  return found;
}

static void name_of(struct listener* out) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/comm", (int)out->pid);
  if (read_file(path, out->command, sizeof out->command) < 0) {
    out->command[0] = '\0';
  }
  out->command[strcspn(out->command, "\n")] = '\0';
}

// The oldest process that has the socket open: a server's children inherit it.
static void find_holder(uint64_t inode, struct listener* out) {
  char socket[64];
  snprintf(socket, sizeof socket, "socket:[%" PRIu64 "]", inode);
  DIR* proc = opendir("/proc");
  if (proc == NULL) {
    return;
  }
  const struct dirent* entry;
  while (out->pid == 0 && (entry = readdir(proc)) != NULL) {
    if (isdigit((unsigned char)entry->d_name[0]) && holds(entry->d_name, socket)) {
      out->pid = atoi(entry->d_name);
      name_of(out);
    }
  }
  closedir(proc);
}

bool listener_find(int port, struct listener* out) {
  *out = (struct listener){0};
  uint64_t inode = listening_inode("/proc/net/tcp", port);
  if (inode == 0) {
    inode = listening_inode("/proc/net/tcp6", port);
  }
  if (inode != 0) {
    find_holder(inode, out);
  }
  return inode != 0;
}
