// command.json: what runs, how, where and under which supervisor. Creating it is what
// makes a run folder taken.

#ifndef BR_COMMAND_FILE_H_
#define BR_COMMAND_FILE_H_

#include <stdbool.h>
#include <stdint.h>

#include "device.h"
#include "host.h"
#include "process.h"
#include "request.h"
#include "run_folder.h"
#include "text.h"

// Returns 0 or an errno; EEXIST when the folder is taken.
int command_file_create(const struct run_folder* folder, const struct request* request,
                        const struct host* host, const struct device* device,
                        struct process_id supervisor);

// The part that is needed to find a run again.
struct recorded_command {
  struct process_id supervisor;
  struct text hostname, boot_id, run_id, run_dir;
  int64_t started_unix_ns;
  int64_t grace_ns;
};

// Returns 0 or an errno: ENOENT when there is none, EBADMSG when it makes no sense.
// The caller frees the record in every case.
int command_file_read(const struct run_folder* folder, struct recorded_command* out);
void recorded_command_free(struct recorded_command* command);

#endif
