#define _GNU_SOURCE
#include "sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>

#include "json.h"

struct column_format {
  const char* name;
  int decimals;
};

#define COLUMN_FORMAT(identifier, name, decimals) {name, decimals},
static const struct column_format kFormats[COLUMN_COUNT] = {SAMPLE_COLUMNS(COLUMN_FORMAT)};
#undef COLUMN_FORMAT

int sampler_open(struct sampler* sampler, int directory_fd, const char* name) {
  *sampler = (struct sampler){0};
  const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC;
  sampler->fd = openat(directory_fd, name, flags, 0666);
  return sampler->fd < 0 ? errno : 0;
}

void sampler_close(struct sampler* sampler) {
  if (sampler->fd >= 0) {
    close(sampler->fd);
  }
  text_free(&sampler->line);
}

static void format_header(struct text* line) {
  for (int c = 0; c < COLUMN_COUNT; c++) {
    text_append_string(line, kFormats[c].name);
    text_append(line, c + 1 < COLUMN_COUNT ? "\t" : "\n", 1);
  }
}

static void format_cells(struct text* line, const struct sample* sample) {
  for (int c = 0; c < COLUMN_COUNT; c++) {
    if (sample->value[c] != MISSING) {
      append_decimal(line, sample->value[c], kFormats[c].decimals);
    }
    text_append(line, c + 1 < COLUMN_COUNT ? "\t" : "\n", 1);
  }
}

// Takes back what a full disk has left of the line.
static bool append_whole(struct sampler* sampler) {
  const ssize_t n = write(sampler->fd, sampler->line.data, sampler->line.length);
  if (n == (ssize_t)sampler->line.length) {
    sampler->size += n;
    return true;
  }
  if (n > 0 && ftruncate(sampler->fd, sampler->size) != 0) {
    sampler->size += n;  // cannot happen short of a broken file system
  }
  return false;
}

void sampler_append(struct sampler* sampler, const struct sample* sample) {
  text_clear(&sampler->line);
  if (sampler->size == 0) {  // the header has to wait for space like any line
    format_header(&sampler->line);
    if (!append_whole(sampler)) {
      sampler->lost++;
      return;
    }
    text_clear(&sampler->line);
  }
  format_cells(&sampler->line, sample);
  if (append_whole(sampler)) {
    sampler->written++;
  } else {
    sampler->lost++;
  }
}
