#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "json.h"

// Length of the well-formed UTF-8 sequence at s (1 to 4), or 0. Overlong forms,
// surrogates and what lies beyond U+10FFFF are not well-formed, as in Python.
static size_t utf8_length(const unsigned char* s) {
  if (s[0] < 0x80) {
    return 1;
  }
  const size_t length = s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
  for (size_t i = 1; i < length; i++) {
    if ((s[i] & 0xc0) != 0x80) {  // also stops at the terminating NUL
      return 0;
    }
  }
  if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
      (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f)) {
    return 0;
  }
  return length;
}

void json_quote(struct text* t, const char* value) {
  text_append(t, "\"", 1);
  const unsigned char* s = (const unsigned char*)value;
  while (*s != '\0') {
    const size_t length = utf8_length(s);
    if (length == 0) {
      text_printf(t, "\\udc%02x", *s++);
      continue;
    }
    if (*s == '"' || *s == '\\') {
      text_printf(t, "\\%c", *s);
    } else if (*s < 0x20 || *s == 0x7f) {
      text_printf(t, "\\u%04x", *s);
    } else {
      text_append(t, (const char*)s, length);
    }
    s += length;
  }
  text_append(t, "\"", 1);
}

static void begin_value(struct text* t, const char* name) {
  if (t->length > 0 && strchr("{[", t->data[t->length - 1]) == NULL) {
    text_append(t, ",", 1);
  }
  if (name != NULL) {
    json_quote(t, name);
    text_append(t, ":", 1);
  }
}

void json_open(struct text* t, const char* name, char bracket) {
  begin_value(t, name);
  text_append(t, &bracket, 1);
}

void json_close(struct text* t, char bracket) { text_append(t, &bracket, 1); }

void json_add_raw(struct text* t, const char* name, const char* value, size_t length) {
  begin_value(t, name);
  text_append(t, value, length);
}

void json_add_string(struct text* t, const char* name, const char* value) {
  begin_value(t, name);
  if (value == NULL) {
    text_append_string(t, "null");
  } else {
    json_quote(t, value);
  }
}

void json_add_bool(struct text* t, const char* name, bool value) {
  const char* word = value ? "true" : "false";
  json_add_raw(t, name, word, strlen(word));
}

void json_add_int(struct text* t, const char* name, int64_t value) {
  json_add_decimal(t, name, value, 0);
}

void json_add_decimal(struct text* t, const char* name, int64_t value, int decimals) {
  begin_value(t, name);
  if (value == JSON_UNKNOWN) {
    text_append_string(t, "null");
  } else {
    append_decimal(t, value, decimals);
  }
}

void append_decimal(struct text* t, int64_t value, int decimals) {
  if (decimals == 0) {
    text_printf(t, "%" PRId64, value);
    return;
  }
  int64_t unit = 1;
  for (int i = 0; i < decimals; i++) {
    unit *= 10;
  }
  const int64_t magnitude = value < 0 ? -value : value;
  text_printf(t, "%s%" PRId64 ".%0*" PRId64, value < 0 ? "-" : "", magnitude / unit, decimals,
              magnitude % unit);
}
