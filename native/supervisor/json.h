// Writing JSON and looking members up in it: just what the files of a run need.
//
// Bytes that are not UTF-8 are written the way Python's "surrogateescape" does
// (byte 0xff as \udcff) and read back so, which keeps every argument and path exact.

#ifndef BR_JSON_H_
#define BR_JSON_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text.h"

// A number that is not known; written as null.
#define JSON_UNKNOWN INT64_MIN

// --- Writing. Members separate themselves from a preceding one. ---

void json_open(struct text* t, const char* name, char bracket);  // name: NULL = an element
void json_close(struct text* t, char bracket);
void json_add_string(struct text* t, const char* name, const char* value);  // NULL = null
void json_add_int(struct text* t, const char* name, int64_t value);
void json_add_bool(struct text* t, const char* name, bool value);

// value / 10^decimals, written with that many decimals.
void json_add_decimal(struct text* t, const char* name, int64_t value, int decimals);

// `value` is JSON already.
void json_add_raw(struct text* t, const char* name, const char* value, size_t length);

// Just the quoted string.
void json_quote(struct text* t, const char* value);

// Just the number: value / 10^decimals.
void append_decimal(struct text* t, int64_t value, int decimals);

// --- Reading. ---

// Is the text one complete object?
bool json_is_object(const char* text);

// The value of a member of the object at `object`, or NULL.
const char* json_member(const char* object, const char* name);

// The integer at `value`, or `otherwise` when it is none (or value is NULL).
int64_t json_int(const char* value, int64_t otherwise);

// The number at `value` in nanoseconds when it is one in seconds.
int64_t json_seconds_as_ns(const char* value, int64_t otherwise);

// Appends the decoded string at `value`; false when it is none (or value is NULL).
bool json_string(const char* value, struct text* out);

#endif
