// The two streams of `serve`: frames from stdin, a queue of frames to stdout.

#ifndef BR_SERVE_WIRE_H_
#define BR_SERVE_WIRE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text.h"

#define WIRE_MOST_LINE_BYTES ((size_t)1 << 20)
#define WIRE_MOST_INPUT_BYTES ((size_t)64 << 20)

struct wire {
  struct text in;
  size_t taken;  // of `in`, by earlier frames
  size_t line_bytes, input_bytes;  // of the frame that is arriving; 0 = its line is not complete
  bool in_ended;
  struct text out;
  size_t sent;  // of `out`
  bool out_broken;
};

// Points into the wire; valid until the next call of wire_receive().
struct frame {
  const char* line;
  const char* input;
  size_t input_bytes;
};

enum frame_arrival { FRAME_NONE, FRAME_COMPLETE, FRAME_BAD };

// Makes stdout non-blocking; stdin is only read when there is something.
void wire_init(struct wire* wire);
void wire_free(struct wire* wire);

// Reads once from stdin.
void wire_receive(struct wire* wire);

// The next frame of what was received. FRAME_BAD: `problem` says why.
enum frame_arrival wire_next(struct wire* wire, struct frame* frame, const char** problem);

// Bytes that wait to be written.
size_t wire_queued(const struct wire* wire);

// Writes as much as stdout takes now.
void wire_flush(struct wire* wire);

// Raw bytes behind an answer.
void wire_append(struct wire* wire, const char* data, size_t length);

// --- Answers: {"id":..., and what the caller adds. ---

void answer_open(struct text* answer, int64_t id);

// Closes the object, queues it and frees the text.
void answer_send(struct wire* wire, struct text* answer);

// id < 0: it belongs to no request.
void answer_error(struct wire* wire, int64_t id, const char* error, const char* message);

#endif
