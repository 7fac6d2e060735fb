// Reading and writing whole files.

#ifndef BR_FILES_H_
#define BR_FILES_H_

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "text.h"

// What fits of a small file, NUL-terminated. Returns its length, or -1 with errno.
ssize_t read_file(const char* path, char* buffer, size_t size);

// The same from an open file that is read again and again (/proc, /sys).
ssize_t read_again(int fd, char* buffer, size_t size);

// Appends all of a file of any size. Returns 0 or an errno.
int read_whole_file(int directory_fd, const char* name, struct text* out);

// Returns 0 or an errno; part of the data may have been written then.
int write_fully(int fd, const char* data, size_t length);

// Makes sure that descriptors 0, 1 and 2 exist, so that no file of ours takes their
// place, and closes every other one that was inherited.
void sanitize_descriptors(void);

// Sends stdin, stdout and stderr to /dev/null.
void silence_standard_streams(void);

#endif
