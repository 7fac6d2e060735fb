#define _GNU_SOURCE
#include "mounts.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "text.h"

// Replaces \ooo by the character that it stands for.
static void unescape(char* field) {
  char* to = field;
  for (const char* from = field; *from != '\0'; to++) {
    if (from[0] == '\\' && strspn(from + 1, "01234567") >= 3) {
      const char digits[] = {from[1], from[2], from[3], '\0'};
      *to = (char)strtol(digits, NULL, 8);
      from += 4;
    } else {
      *to = *from++;
    }
  }
  *to = '\0';
}

// The mount point is the fifth field.
static bool is_within(char* line, const char* directory) {
  char* rest = NULL;
  char* field = strtok_r(line, " ", &rest);
  for (int i = 1; field != NULL && i < 5; i++) {
    field = strtok_r(NULL, " ", &rest);
  }
  if (field == NULL) {
    return false;
  }
  unescape(field);
  const size_t length = strlen(directory);
  return strncmp(field, directory, length) == 0 && (field[length] == '\0' || field[length] == '/');
}

bool mounts_within(const char* directory) {
  struct text t = {0};
  bool found = read_whole_file(AT_FDCWD, "/proc/self/mountinfo", &t) != 0 || t.length == 0;
  char* rest = NULL;
  for (char* line = found ? NULL : strtok_r(t.data, "\n", &rest); line != NULL && !found;
       line = strtok_r(NULL, "\n", &rest)) {
    found = is_within(line, directory);
  }
  text_free(&t);
  return found;
}
