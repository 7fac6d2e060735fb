#include "serve_requests.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "text.h"

static const char* skip_blanks(const char* p) { return p + strspn(p, " \t\r\n"); }

// What follows the string at p, which json_string() has found to be one.
static const char* after_string(const char* p) {
  for (p++; *p != '"'; p++) {
    p += *p == '\\';
  }
  return p + 1;
}

// Appends the string at p; NULL when it is none, or holds a NUL, which no argument can.
static const char* take_string(const char* p, struct text* out) {
  const size_t before = out->length;
  if (!json_string(p, out)) {
    return NULL;
  }
  const bool has_nul = strlen(text_string(out) + before) != out->length - before;
  return has_nul ? NULL : skip_blanks(after_string(p));
}

// Takes over the content of `item`.
static void add_item(char*** list, size_t* count, struct text* item) {
  *list = checked_realloc(*list, (*count + 2) * sizeof **list);
  (*list)[(*count)++] = checked_strdup(text_string(item));
  (*list)[*count] = NULL;
  text_clear(item);
}

// The member of an object whose value follows its name: NAME=VALUE.
static const char* take_pair(const char* p, struct text* out) {
  p = take_string(p, out);
  if (p == NULL || *p != ':' || out->length == 0 || strchr(out->data, '=') != NULL) {
    return NULL;
  }
  text_append(out, "=", 1);
  return take_string(skip_blanks(p + 1), out);
}

// ["a","b"] or {"NAME":"VALUE"}, as the bracket at p says.
static bool take_list(const char* p, char bracket, char*** list) {
  const char end = bracket == '[' ? ']' : '}';
  struct text item = {0};
  size_t count = 0;
  *list = checked_realloc(NULL, sizeof **list);
  (*list)[0] = NULL;
  bool good = *p == bracket;
  p = good ? skip_blanks(p + 1) : p;
  bool more = good && *p != end;
  while (more) {
    p = bracket == '[' ? take_string(p, &item) : take_pair(p, &item);
    good = p != NULL && (*p == ',' || *p == end);
    if (good) {
      add_item(list, &count, &item);
    }
    more = good && *p == ',';
    p = more ? skip_blanks(p + 1) : p;
  }
  text_free(&item);
  return good;
}

static bool is_null(const char* value) {
  return value == NULL || strncmp(value, "null", strlen("null")) == 0;
}

// NULL stays NULL.
static bool take_word(const char* value, char** out) {
  struct text t = {0};
  const bool good = is_null(value) || take_string(value, &t) != NULL;
  if (good && !is_null(value)) {
    *out = checked_strdup(text_string(&t));
  }
  text_free(&t);
  return good;
}

static const char* read_run(const char* line, const char* argv, struct demand* out) {
  out->kind = DEMAND_RUN;
  if (!take_list(argv, '[', &out->argv) || out->argv[0] == NULL) {
    return "run is not a list of strings, at least one";
  }
  const char* env = json_member(line, "env");
  if (!take_list(is_null(env) ? "{}" : env, '{', &out->env)) {
    return "env is not an object of strings";
  }
  return take_word(json_member(line, "cwd"), &out->cwd) ? NULL : "cwd is not a string";
}

static const char* read_path(const char* value, enum demand_kind kind, struct demand* out) {
  out->kind = kind;
  const bool good = take_word(value, &out->path) && out->path != NULL;
  return good ? NULL : "a path is not a string";
}

static const char* read_times_and_ranges(const char* line, struct demand* out) {
  const char* timeout = json_member(line, "timeout_s");
  out->timeout_ns = json_seconds_as_ns(timeout, -1);
  if (!is_null(timeout) && out->timeout_ns < 0) {
    return "timeout_s is not a number of seconds";
  }
  const char* limit = json_member(line, "limit");
  out->offset = json_int(json_member(line, "offset"), 0);
  out->limit = is_null(limit) ? -1 : json_int(limit, -1);
  if (out->offset < 0 || (!is_null(limit) && out->limit < 0)) {
    return "offset or limit is not a number of bytes";
  }
  return NULL;
}

const char* demand_read(const char* line, struct demand* out) {
  *out = (struct demand){.id = json_int(json_member(line, "id"), -1)};
  if (out->id < 0) {
    return "a request has no id";
  }
  const char* problem = read_times_and_ranges(line, out);
  if (problem != NULL) {
    return problem;
  }
  const char* value;
  if ((value = json_member(line, "run")) != NULL) {
    return read_run(line, value, out);
  }
  if ((value = json_member(line, "read")) != NULL) {
    return read_path(value, DEMAND_READ, out);
  }
  if ((value = json_member(line, "size")) != NULL) {
    return read_path(value, DEMAND_SIZE, out);
  }
  if ((value = json_member(line, "wait")) != NULL) {
    return read_path(value, DEMAND_WAIT, out);
  }
  if ((value = json_member(line, "cancel")) != NULL) {
    out->kind = DEMAND_CANCEL;
    out->target = json_int(value, -1);
    return NULL;
  }
  return "a request is none of run, read, size, wait, cancel";
}

static void free_list(char** list) {
  for (char** item = list; item != NULL && *item != NULL; item++) {
    free(*item);
  }
  free(list);
}

void demand_free(struct demand* demand) {
  free(demand->path);
  free(demand->cwd);
  free_list(demand->argv);
  free_list(demand->env);
}
