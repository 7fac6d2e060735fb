#define _GNU_SOURCE
#include "request.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text.h"

struct environment {
  char** entries;
  size_t count;
};

static size_t name_length(const char* entry) {
  const char* sign = strchr(entry, '=');
  return sign == NULL ? strlen(entry) : (size_t)(sign - entry);
}

// Takes `entry`, in the place of an earlier one with the same name.
static void set(struct environment* e, char* entry) {
  const size_t length = name_length(entry);
  for (size_t i = 0; i < e->count; i++) {
    if (name_length(e->entries[i]) == length && memcmp(e->entries[i], entry, length) == 0) {
      free(e->entries[i]);
      e->entries[i] = entry;
      return;
    }
  }
  e->entries = checked_realloc(e->entries, (e->count + 2) * sizeof *e->entries);
  e->entries[e->count++] = entry;
}

static char* format_entry(const char* name, const char* value) {
  struct text t = {0};
  text_printf(&t, "%s=%s", name, value);
  return t.data;
}

char** environment_create(const struct request* request) {
  struct environment e = {0};
  for (char** inherited = environ; !request->clear_env && *inherited != NULL; inherited++) {
    set(&e, checked_strdup(*inherited));
  }
  for (const char* const* added = request->env; *added != NULL; added++) {
    set(&e, checked_strdup(*added));
  }
  set(&e, format_entry(RUN_ID_VARIABLE, request->run_id));
  set(&e, format_entry(RUN_DIR_VARIABLE, request->run_dir));
  e.entries[e.count] = NULL;
  return e.entries;
}

void environment_free(char** environment) {
  for (char** entry = environment; *entry != NULL; entry++) {
    free(*entry);
  }
  free(environment);
}
