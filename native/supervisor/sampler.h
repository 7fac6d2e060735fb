// The samples file: a header line, then one line of tab-separated cells per sample.

#ifndef BR_SAMPLER_H_
#define BR_SAMPLER_H_

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "columns.h"
#include "text.h"

struct sampler {
  int fd;
  off_t size;        // of the complete lines in the file
  struct text line;  // reused
  int64_t written;
  int64_t lost;  // samples that could not be written: disk full
};

// Opens the file anew in the directory. Returns 0 or an errno; the sampler can be used
// in either case and then counts every sample as lost.
int sampler_open(struct sampler* sampler, int directory_fd, const char* name);
void sampler_close(struct sampler* sampler);

// Appends one line by one write. The file never holds a part of a line.
void sampler_append(struct sampler* sampler, const struct sample* sample);

#endif
