#define _GNU_SOURCE
#include "command_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "files.h"
#include "json.h"
#include "version.h"

static void add_seconds(struct text* t, const char* name, int64_t ns) {
  json_add_decimal(t, name, ns == JSON_UNKNOWN ? JSON_UNKNOWN : ns / NS_PER_US, 6);
}

static void add_argv(struct text* t, char* const* argv) {
  json_open(t, "argv", '[');
  for (; *argv != NULL; argv++) {
    json_add_string(t, NULL, *argv);
  }
  json_close(t, ']');
}

static bool is_set_again(const char* const* entry) {
  const size_t length = (size_t)(strchr(*entry, '=') - *entry) + 1;
  for (const char* const* later = entry + 1; *later != NULL; later++) {
    if (strncmp(*later, *entry, length) == 0) {
      return true;
    }
  }
  return false;
}

static void add_env(struct text* t, const char* const* env) {
  json_open(t, "env", '{');
  for (; *env != NULL; env++) {
    if (!is_set_again(env)) {
      struct text name = {0};
      const char* sign = strchr(*env, '=');
      text_append(&name, *env, (size_t)(sign - *env));
      json_add_string(t, name.data, sign + 1);
      text_free(&name);
    }
  }
  json_close(t, '}');
}

static void add_du(struct text* t, const struct request* request) {
  json_open(t, "du", '[');
  for (size_t i = 0; i < request->du_count; i++) {
    json_add_string(t, NULL, request->du_directories[i]);
  }
  json_close(t, ']');
}

static void add_device(struct text* t, const struct request* request,
                       const struct device* device) {
  if (request->device_directory == NULL) {
    json_add_string(t, "device", NULL);
    return;
  }
  json_open(t, "device", '{');
  json_add_string(t, "directory", request->device_directory);
  json_add_string(t, "name", device->name[0] == '\0' ? NULL : device->name);
  json_add_int(t, "major", device->major_number);
  json_add_int(t, "minor", device->minor_number);
  json_close(t, '}');
}

static void add_host_and_time(struct text* t, const struct host* host,
                              struct process_id supervisor) {
  json_add_string(t, "hostname", host->name);
  json_add_string(t, "boot_id", host->boot_id);
  json_open(t, "started_at", '{');
  json_add_int(t, "unix_ns", clock_unix_ns());
  json_add_int(t, "monotonic_ns", clock_monotonic_ns());
  json_close(t, '}');
  json_open(t, "supervisor", '{');
  json_add_int(t, "pid", supervisor.pid);
  json_add_int(t, "start_time", (int64_t)supervisor.start_time);
  json_add_string(t, "version", BR_VERSION);
  json_close(t, '}');
}

int command_file_create(const struct run_folder* folder, const struct request* request,
                        const struct host* host, const struct device* device,
                        struct process_id supervisor) {
  struct text t = {0};
  json_open(&t, NULL, '{');
  json_add_string(&t, "run_id", request->run_id);
  json_add_string(&t, "run_dir", request->run_dir);
  add_argv(&t, request->argv);
  add_env(&t, request->env);
  json_add_bool(&t, "clear_env", request->clear_env);
  json_add_string(&t, "cwd", request->cwd);
  add_seconds(&t, "timeout_s", request->timeout_ns == 0 ? JSON_UNKNOWN : request->timeout_ns);
  add_seconds(&t, "grace_s", request->grace_ns);
  add_seconds(&t, "interval_s", request->interval_ns);
  add_du(&t, request);
  add_device(&t, request, device);
  add_host_and_time(&t, host, supervisor);
  json_close(&t, '}');
  text_append(&t, "\n", 1);

  // Whoever else starts a run here at this moment drafts under another name.
  char draft[64];
  snprintf(draft, sizeof draft, COMMAND_FILE ".%d.%lld", (int)getpid(),
           (long long)clock_monotonic_ns());
  // Not synced: what a power failure interrupts starts again, in a folder of its own.
  const int error = folder_publish(folder, draft, COMMAND_FILE, &t, false);
  if (error != 0) {
    unlinkat(folder->fd, draft, 0);
  }
  text_free(&t);
  return error;
}

static bool parse(const char* json, struct recorded_command* out) {
  if (!json_is_object(json)) {
    return false;
  }
  const char* supervisor = json_member(json, "supervisor");
  const char* started = json_member(json, "started_at");
  if (supervisor == NULL || started == NULL) {
    return false;
  }
  out->supervisor.pid = (pid_t)json_int(json_member(supervisor, "pid"), 0);
  out->supervisor.start_time = (uint64_t)json_int(json_member(supervisor, "start_time"), 0);
  out->started_unix_ns = json_int(json_member(started, "unix_ns"), JSON_UNKNOWN);
  out->grace_ns = json_seconds_as_ns(json_member(json, "grace_s"), 0);
  return out->supervisor.pid > 0 && json_string(json_member(json, "hostname"), &out->hostname) &&
         json_string(json_member(json, "boot_id"), &out->boot_id) &&
         json_string(json_member(json, "run_id"), &out->run_id) &&
         json_string(json_member(json, "run_dir"), &out->run_dir);
}

int command_file_read(const struct run_folder* folder, struct recorded_command* out) {
  *out = (struct recorded_command){.started_unix_ns = JSON_UNKNOWN};
  struct text content = {0};
  int error = read_whole_file(folder->fd, COMMAND_FILE, &content);
  if (error == 0 && !parse(text_string(&content), out)) {
    error = EBADMSG;
  }
  text_free(&content);
  return error;
}

void recorded_command_free(struct recorded_command* command) {
  text_free(&command->hostname);
  text_free(&command->boot_id);
  text_free(&command->run_id);
  text_free(&command->run_dir);
}
