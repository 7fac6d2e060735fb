// A growing piece of text. Starts as {0}; freed with text_free().
//
// A failed allocation ends the process: the supervisor only grows text before
// its child exists or by a few hundred bytes.

#ifndef BR_TEXT_H_
#define BR_TEXT_H_

#include <stddef.h>

struct text {
  char* data;  // NUL-terminated once anything was appended
  size_t length;
  size_t capacity;
};

void text_append(struct text* t, const char* data, size_t length);
void text_append_string(struct text* t, const char* string);
__attribute__((format(printf, 2, 3))) void text_printf(struct text* t, const char* format, ...);
void text_clear(struct text* t);
void text_free(struct text* t);

// The text as a C string; "" when nothing was appended.
const char* text_string(const struct text* t);

// Allocation that ends the process, with a message, when there is no memory.
void* checked_realloc(void* memory, size_t size);
char* checked_strdup(const char* string);

#endif
