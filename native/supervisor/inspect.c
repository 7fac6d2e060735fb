#define _GNU_SOURCE
#include "inspect.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "files.h"
#include "front.h"
#include "json.h"

static bool read_status(const struct run_folder* folder, struct text* out) {
  text_clear(out);
  return read_whole_file(folder->fd, STATUS_FILE, out) == 0 &&
         json_is_object(text_string(out));
}

static struct process_id read_child(const struct run_folder* folder) {
  struct text content = {0};
  struct process_id child = {0};
  if (read_whole_file(folder->fd, CHILD_FILE, &content) == 0) {
    child.pid = (pid_t)json_int(json_member(text_string(&content), "pid"), 0);
    child.start_time = (uint64_t)json_int(json_member(text_string(&content), "start_time"), 0);
  }
  text_free(&content);
  return child;
}

static void set_lost(struct inspection* i, const char* reason) {
  i->state = RUN_LOST;
  i->reason = reason;
}

// There is a command.json but no status.json.
static void judge_unfinished(const struct run_folder* folder, const struct host* host,
                             struct inspection* i) {
  if (strcmp(text_string(&i->command.boot_id), host->boot_id) != 0) {
    i->elsewhere = strcmp(text_string(&i->command.hostname), host->name) != 0;
    i->rebooted = !i->elsewhere;
    set_lost(i, i->rebooted ? "the host was rebooted" : "the run was started on another host");
  } else if (process_is_alive(i->command.supervisor)) {
    i->state = RUN_RUNNING;
  } else if (read_status(folder, &i->status)) {
    i->state = RUN_FINISHED;  // it ended between the two looks
  } else {
    set_lost(i, "the supervisor is gone and has left no status.json");
  }
}

void inspect_run(const struct run_folder* folder, const struct host* host,
                 struct inspection* out) {
  *out = (struct inspection){.state = RUN_ABSENT};
  const int error = command_file_read(folder, &out->command);
  if (error == ENOENT) {
    return;
  }
  out->child = read_child(folder);
  if (read_status(folder, &out->status)) {
    out->state = RUN_FINISHED;
  } else if (error != 0) {
    set_lost(out, COMMAND_FILE " cannot be read");
  } else {
    judge_unfinished(folder, host, out);
  }
}

void inspection_free(struct inspection* inspection) {
  recorded_command_free(&inspection->command);
  text_free(&inspection->status);
}

static void add_process(struct text* t, const char* pid_name, const char* start_time_name,
                        struct process_id id) {
  json_add_int(t, pid_name, id.pid == 0 ? JSON_UNKNOWN : id.pid);
  if (start_time_name != NULL) {
    json_add_int(t, start_time_name, id.pid == 0 ? JSON_UNKNOWN : (int64_t)id.start_time);
  }
}

// On one line, whoever may have written it: a line break in JSON is only a blank.
static void add_status(struct text* t, struct text* status) {
  for (size_t i = 0; i < status->length; i++) {
    if (status->data[i] == '\n' || status->data[i] == '\r') {
      status->data[i] = ' ';
    }
  }
  while (status->length > 0 && status->data[status->length - 1] == ' ') {
    status->length--;
  }
  json_add_raw(t, "status", status->data, status->length);
}

void inspection_format(const struct inspection* i, const struct run_folder* folder,
                       struct text* out) {
  static const char* const kNames[] = {"absent", "running", "finished", "lost"};
  json_open(out, NULL, '{');
  json_add_string(out, "state", kNames[i->state]);
  if (i->state != RUN_ABSENT) {
    add_process(out, "pid", "start_time", i->command.supervisor);
    add_process(out, "child_pid", NULL, i->child);
    json_add_int(out, "stdout_bytes", folder_file_size(folder, STDOUT_FILE));
    json_add_int(out, "stderr_bytes", folder_file_size(folder, STDERR_FILE));
    json_add_int(out, "samples_bytes", folder_file_size(folder, SAMPLES_FILE));
  }
  if (i->state == RUN_LOST) {
    json_add_string(out, "reason", i->reason);
  }
  if (i->state == RUN_FINISHED) {
    struct text status = i->status;
    add_status(out, &status);
  }
  json_close(out, '}');
}

int state_command(const char* run_dir) {
  struct run_folder folder;
  const int error = folder_open(&folder, run_dir);
  if (error == ENOENT) {
    puts("{\"state\":\"absent\"}");
    return EXIT_OK;
  }
  if (error != 0) {
    fprintf(stderr, "br-supervise: cannot open directory %s: %s\n", run_dir, strerror(error));
    return EXIT_TROUBLE;
  }
  struct host host;
  host_read(&host);
  struct inspection inspection;
  inspect_run(&folder, &host, &inspection);
  struct text line = {0};
  inspection_format(&inspection, &folder, &line);
  puts(line.data);
  text_free(&line);
  inspection_free(&inspection);
  folder_close(&folder);
  return EXIT_OK;
}
