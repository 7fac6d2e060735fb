#define _GNU_SOURCE
#include "serve_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "json.h"

// More than this is not kept when a buffer is empty.
static const size_t kIdleCapacity = (size_t)4 << 20;

void wire_init(struct wire* wire) {
  *wire = (struct wire){0};
  fcntl(STDOUT_FILENO, F_SETFL, fcntl(STDOUT_FILENO, F_GETFL) | O_NONBLOCK);
}

void wire_free(struct wire* wire) {
  text_free(&wire->in);
  text_free(&wire->out);
}

// Moves what is left to the front.
static void drop_front(struct text* t, size_t* used) {
  if (*used == t->length) {
    text_clear(t);
    if (t->capacity > kIdleCapacity) {
      text_free(t);
    }
  } else if (*used > 0) {
    memmove(t->data, t->data + *used, t->length - *used + 1);
    t->length -= *used;
  }
  *used = 0;
}

void wire_receive(struct wire* wire) {
  char chunk[65536];
  const ssize_t n = read(STDIN_FILENO, chunk, sizeof chunk);
  if (n > 0) {
    drop_front(&wire->in, &wire->taken);
    text_append(&wire->in, chunk, (size_t)n);
  } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
    wire->in_ended = true;
  }
}

// The line has arrived; `begin` is ended by a NUL in the place of the line break.
static const char* check_line(struct wire* wire, const char* begin) {
  if (strlen(begin) + 1 != wire->line_bytes || !json_is_object(begin)) {
    return "a line is not a JSON object";
  }
  const int64_t input_bytes = json_int(json_member(begin, "input_bytes"), 0);
  if (input_bytes < 0 || (uint64_t)input_bytes > WIRE_MOST_INPUT_BYTES) {
    return "input_bytes is out of range";
  }
  wire->input_bytes = (size_t)input_bytes;
  return NULL;
}

static enum frame_arrival take_line(struct wire* wire, char* begin, size_t available,
                                    const char** problem) {
  char* end = available == 0 ? NULL : memchr(begin, '\n', available);
  const size_t length = end == NULL ? available : (size_t)(end - begin);
  if (length > WIRE_MOST_LINE_BYTES) {
    *problem = "a line is longer than 1 MiB";
    return FRAME_BAD;
  }
  if (end == NULL) {
    return FRAME_NONE;
  }
  *end = '\0';
  wire->line_bytes = length + 1;
  *problem = check_line(wire, begin);
  return *problem == NULL ? FRAME_COMPLETE : FRAME_BAD;
}

enum frame_arrival wire_next(struct wire* wire, struct frame* frame, const char** problem) {
  const size_t available = wire->in.length - wire->taken;
  if (available == 0) {
    return FRAME_NONE;
  }
  char* begin = wire->in.data + wire->taken;
  if (wire->line_bytes == 0) {
    const enum frame_arrival line = take_line(wire, begin, available, problem);
    if (line != FRAME_COMPLETE) {
      return line;
    }
  }
  if (available < wire->line_bytes + wire->input_bytes) {
    return FRAME_NONE;
  }
  *frame = (struct frame){begin, begin + wire->line_bytes, wire->input_bytes};
  wire->taken += wire->line_bytes + wire->input_bytes;
  wire->line_bytes = wire->input_bytes = 0;
  return FRAME_COMPLETE;
}

size_t wire_queued(const struct wire* wire) { return wire->out.length - wire->sent; }

void wire_flush(struct wire* wire) {
  while (wire_queued(wire) > 0 && !wire->out_broken) {
    const ssize_t n = write(STDOUT_FILENO, wire->out.data + wire->sent, wire_queued(wire));
    if (n >= 0) {
      wire->sent += (size_t)n;
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      wire->out_broken = true;
    }
  }
  // Not at every turn: that would move a long queue again and again.
  if (wire_queued(wire) == 0 || wire->sent > kIdleCapacity) {
    drop_front(&wire->out, &wire->sent);
  }
}

void wire_append(struct wire* wire, const char* data, size_t length) {
  if (length > 0) {
    text_append(&wire->out, data, length);
  }
}

void answer_open(struct text* answer, int64_t id) {
  json_open(answer, NULL, '{');
  if (id >= 0) {
    json_add_int(answer, "id", id);
  }
}

void answer_send(struct wire* wire, struct text* answer) {
  json_close(answer, '}');
  text_append(answer, "\n", 1);
  wire_append(wire, answer->data, answer->length);
  text_free(answer);
}

void answer_error(struct wire* wire, int64_t id, const char* error, const char* message) {
  struct text answer = {0};
  answer_open(&answer, id);
  json_add_string(&answer, "error", error);
  if (message != NULL) {
    json_add_string(&answer, "message", message);
  }
  answer_send(wire, &answer);
}
