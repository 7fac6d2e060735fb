// The folder of one run and its files. A file that has its final name is complete.
// Functions that return int return 0 or an errno.

#ifndef BR_RUN_FOLDER_H_
#define BR_RUN_FOLDER_H_

#include <stdbool.h>
#include <stdint.h>

#include "text.h"

#define COMMAND_FILE "command.json"
#define CHILD_FILE "child.json"
#define STATUS_FILE "status.json"
#define STATUS_RESERVE_FILE "status.reserve"
#define STDOUT_FILE "stdout"
#define STDERR_FILE "stderr"
#define SAMPLES_FILE "samples"
#define LOG_FILE "supervisor.log"

struct run_folder {
  int fd;
};

int folder_open(struct run_folder* folder, const char* path);
void folder_close(struct run_folder* folder);

// Writes the text to `draft` and gives that file the name `name`, once: EEXIST when
// there is such a file already. `durable`: it is on the disk before the name is.
int folder_publish(const struct run_folder* folder, const char* draft, const char* name,
                   const struct text* content, bool durable);

// Takes the disk space that the status will need, as its draft.
int folder_reserve_status(const struct run_folder* folder);

// Opens a file for a process's output, emptied. Returns a descriptor or -1 with errno.
int folder_open_output(const struct run_folder* folder, const char* name);

// The size of a file, or JSON_UNKNOWN when it is not there.
int64_t folder_file_size(const struct run_folder* folder, const char* name);

// One caller at a time, until the folder is closed.
int folder_lock(const struct run_folder* folder);

#endif
