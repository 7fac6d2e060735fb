#define _GNU_SOURCE
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void* checked_realloc(void* memory, size_t size) {
  void* result = realloc(memory, size);
  if (result == NULL) {
    fputs("br-supervise: out of memory\n", stderr);
    exit(1);
  }
  return result;
}

char* checked_strdup(const char* string) {
  const size_t size = strlen(string) + 1;
  return memcpy(checked_realloc(NULL, size), string, size);
}

// Room for `extra` more bytes and the terminating NUL.
static void reserve(struct text* t, size_t extra) {
  if (t->length + extra < t->capacity) {
    return;
  }
  size_t capacity = t->capacity == 0 ? 256 : t->capacity;
  while (capacity <= t->length + extra) {
    capacity *= 2;
  }
  t->data = checked_realloc(t->data, capacity);
  t->capacity = capacity;
}

void text_append(struct text* t, const char* data, size_t length) {
  reserve(t, length);
  memcpy(t->data + t->length, data, length);
  t->length += length;
  t->data[t->length] = '\0';
}

void text_append_string(struct text* t, const char* string) {
  text_append(t, string, strlen(string));
}

void text_printf(struct text* t, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  va_list again;
  va_copy(again, arguments);
  const int length = vsnprintf(NULL, 0, format, arguments);
  va_end(arguments);
  if (length >= 0) {
    reserve(t, (size_t)length);
    vsnprintf(t->data + t->length, (size_t)length + 1, format, again);
    t->length += (size_t)length;
  }
  va_end(again);
}

void text_clear(struct text* t) {
  t->length = 0;
  if (t->data != NULL) {
    t->data[0] = '\0';
  }
}

void text_free(struct text* t) {
  free(t->data);
  *t = (struct text){0};
}

const char* text_string(const struct text* t) { return t->data == NULL ? "" : t->data; }
