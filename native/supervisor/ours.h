// Folders that are ours: below a claimed work directory, with our marker, and the only ones
// that are ever deleted.

#ifndef BR_OURS_H_
#define BR_OURS_H_

#include <stddef.h>

#define MARKER_FILE ".benchrunner"

// A folder, and the claimed directory that it must be in. Paths are absolute.
struct our_folder {
  const char* work;
  const char* path;
};

struct our_folders {
  struct our_folder* items;
  size_t count;
  const char* const* inside;  // made in them once they are fresh; NULL-terminated
  const char* marker;         // content of their marker file
};

// What was found, or done. A refusal changes nothing.
enum our_verdict {
  OURS_DONE,
  OURS_ABSENT,
  OURS_SYMLINK,
  OURS_OUTSIDE,
  OURS_PRECIOUS,
  OURS_MOUNTED,
  OURS_FOREIGN_WORK,
  OURS_FOREIGN,
  OURS_ERROR,  // errno says which
};

// Deletes a folder. Symbolic links are not followed and other file systems not entered. The
// marker goes last, so that a removal that was cut short can be done again.
enum our_verdict ours_remove(const struct our_folder* folder);

// Makes folders empty: what is there goes as with ours_remove. Says on stderr why not.
// Returns an exit code: EXIT_OK, EXIT_TROUBLE, or EXIT_REFUSED with the word of the verdict
// and the folder on stdout.
int ours_fresh(const struct our_folders* folders);

// The same for deleting; a folder that is not there is no error.
int ours_remove_all(const struct our_folders* folders);

// Holds others off who make these folders fresh; until the descriptor is closed.
// Returns the descriptor, or -1 with errno.
int ours_lock(const struct our_folders* folders);

#endif
