#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "json.h"

static const char* skip_space(const char* p) { return p + strspn(p, " \t\r\n"); }

// p is at the opening quote; returns what follows the closing one, or NULL.
static const char* skip_string(const char* p) {
  for (p++; *p != '"'; p++) {
    if (*p == '\\') {
      p++;
    }
    if (*p == '\0') {
      return NULL;
    }
  }
  return p + 1;
}

// Returns what follows the value at p, or NULL when the text ends within it.
static const char* skip_value(const char* p) {
  int depth = 0;
  do {
    p = skip_space(p);
    if (*p == '"') {
      p = skip_string(p);
      if (p == NULL) {
        return NULL;
      }
    } else if (*p == '{' || *p == '[') {
      depth++;
      p++;
    } else if (*p == '}' || *p == ']') {
      depth--;
      p++;
    } else if (*p == ',' || *p == ':') {
      p++;
    } else {
      const size_t length = strcspn(p, " \t\r\n,:]}[{\"");
      if (length == 0) {
        return NULL;
      }
      p += length;
    }
  } while (depth > 0);
  return p;
}

bool json_is_object(const char* text) {
  const char* p = skip_space(text);
  if (*p != '{') {
    return false;
  }
  p = skip_value(p);
  return p != NULL && *skip_space(p) == '\0';
}

const char* json_member(const char* object, const char* name) {
  const size_t name_length = strlen(name);
  const char* p = skip_space(object);
  if (*p != '{') {
    return NULL;
  }
  for (p = skip_space(p + 1); *p == '"'; p = skip_space(p + 1)) {
    const char* key = p + 1;
    p = skip_string(p);
    if (p == NULL) {
      return NULL;
    }
    const size_t key_length = (size_t)(p - 1 - key);
    p = skip_space(p);
    if (*p != ':') {
      return NULL;
    }
    p = skip_space(p + 1);
    if (key_length == name_length && memcmp(key, name, name_length) == 0) {
      return p;
    }
    p = skip_value(p);
    if (p == NULL) {
      return NULL;
    }
    p = skip_space(p);
    if (*p != ',') {
      return NULL;
    }
  }
  return NULL;
}

int64_t json_int(const char* value, int64_t otherwise) {
  if (value == NULL) {
    return otherwise;
  }
  char* end;
  errno = 0;
  const long long number = strtoll(value, &end, 10);
  return end == value || errno != 0 ? otherwise : number;
}

int64_t json_seconds_as_ns(const char* value, int64_t otherwise) {
  if (value == NULL) {
    return otherwise;
  }
  char* end;
  const double seconds = strtod(value, &end);
  const bool sane = end != value && seconds >= 0 && seconds < 1e9;
  return sane ? (int64_t)(seconds * (double)NS_PER_SECOND) : otherwise;
}

static void append_utf8(struct text* out, uint32_t c) {
  char bytes[4];
  size_t n = 0;
  if (c < 0x80) {
    bytes[n++] = (char)c;
  } else if (c < 0x800) {
    bytes[n++] = (char)(0xc0 | (c >> 6));
  } else if (c < 0x10000) {
    bytes[n++] = (char)(0xe0 | (c >> 12));
    bytes[n++] = (char)(0x80 | ((c >> 6) & 0x3f));
  } else {
    bytes[n++] = (char)(0xf0 | (c >> 18));
    bytes[n++] = (char)(0x80 | ((c >> 12) & 0x3f));
    bytes[n++] = (char)(0x80 | ((c >> 6) & 0x3f));
  }
  if (c >= 0x80) {
    bytes[n++] = (char)(0x80 | (c & 0x3f));
  }
  text_append(out, bytes, n);
}

// p is at the "u" of an escape. Returns what follows its digits, or NULL.
static const char* read_code_unit(const char* p, uint32_t* unit) {
  char digits[5] = {0};
  if (*p != 'u') {
    return NULL;
  }
  for (int i = 0; i < 4; i++) {
    digits[i] = p[1 + i];
    if (digits[i] == '\0' || strchr("0123456789abcdefABCDEF", digits[i]) == NULL) {
      return NULL;
    }
  }
  *unit = (uint32_t)strtoul(digits, NULL, 16);
  return p + 5;
}

static const char* read_unicode_escape(const char* p, struct text* out) {
  uint32_t c;
  p = read_code_unit(p, &c);
  if (p == NULL) {
    return NULL;
  }
  if (c >= 0xdc80 && c <= 0xdcff) {  // a raw byte, see json.h
    const char byte = (char)(c & 0xff);
    text_append(out, &byte, 1);
    return p;
  }
  if (c >= 0xd800 && c < 0xdc00 && *p == '\\') {
    uint32_t low;
    const char* end = read_code_unit(p + 1, &low);
    if (end != NULL && low >= 0xdc00 && low < 0xe000) {
      append_utf8(out, 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00));
      return end;
    }
  }
  append_utf8(out, c);
  return p;
}

bool json_string(const char* value, struct text* out) {
  static const char kEscapes[] = "\"\\/bfnrt";
  static const char kMeanings[] = "\"\\/\b\f\n\r\t";
  if (value == NULL || *value != '"' || skip_string(value) == NULL) {
    return false;
  }
  const char* p = value + 1;
  while (*p != '"') {
    if (*p != '\\') {
      text_append(out, p++, 1);
      continue;
    }
    const char* escape = strchr(kEscapes, *++p);
    if (escape != NULL && *escape != '\0') {
      text_append(out, &kMeanings[escape - kEscapes], 1);
      p++;
      continue;
    }
    p = read_unicode_escape(p, out);
    if (p == NULL) {
      return false;
    }
  }
  return true;
}
