#define _GNU_SOURCE
#include "lease.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "front.h"
#include "json.h"
#include "lease_file.h"

static const char* const kStates[] = {"free", "held", "released", "unreadable"};

static bool is(const struct text* text, const char* value) {
  return strcmp(text_string(text), value) == 0;
}

static void set(struct text* text, const char* value) {
  text_clear(text);
  text_append_string(text, value);
}

static int complain(const char* path, int error) {
  fprintf(stderr, "br-supervise: the lock file %s cannot be used: %s\n", path,
          lease_error(error));
  return EXIT_TROUBLE;
}

// --- What is known of the holder. ---

// JSON_UNKNOWN when that was in another boot.
static int64_t heartbeat_age_ns(const struct lease_file* file, const struct lease* lease) {
  const bool same_boot = is(&lease->boot_id, file->host.boot_id);
  return same_boot ? file->now_ns - lease->heartbeat_ns : JSON_UNKNOWN;
}

static bool is_stale(const struct lease_file* file, const struct lease* lease) {
  const int64_t age_ns = heartbeat_age_ns(file, lease);
  return age_ns == JSON_UNKNOWN || age_ns >= lease->stale_ns;
}

static void add_seconds(struct text* t, const char* name, int64_t ns) {
  json_add_decimal(t, name, ns == JSON_UNKNOWN ? JSON_UNKNOWN : ns / NS_PER_MS, 3);
}

static const char* or_null(const struct text* text) {
  return text->length == 0 ? NULL : text->data;
}

// All keys are always there.
static void add_holder(struct text* t, const char* name, const struct lease_file* file,
                       const struct lease* l) {
  if (l->state == LEASE_FREE) {
    json_add_string(t, name, NULL);
    return;
  }
  const bool known = l->state != LEASE_UNREADABLE;
  json_open(t, name, '{');
  json_add_string(t, "state", kStates[l->state]);
  json_add_string(t, "owner", or_null(&l->owner));
  json_add_string(t, "store", or_null(&l->store));
  json_add_string(t, "about", or_null(&l->about));
  json_add_string(t, "process", or_null(&l->process));
  json_add_int(t, "fence", known ? l->fence : JSON_UNKNOWN);
  add_seconds(t, "since_unix", known ? l->since_unix_ns : JSON_UNKNOWN);
  add_seconds(t, "seconds_since_heartbeat",
              known ? heartbeat_age_ns(file, l) : file->unchanged_ns);
  json_add_bool(t, "stale", known && is_stale(file, l));
  json_add_string(t, "run_dir", or_null(&l->run_dir));
  json_add_bool(t, "running", lease_is_running(file));
  json_close(t, '}');
}

static void print(struct text* line) {
  puts(text_string(line));
  fflush(stdout);
  text_free(line);
}

// --- take ---

// NULL when the caller may have it.
static const char* why_not(const struct lease_file* file, const struct lease* lease,
                           const struct lease_request* request) {
  if (lease->state == LEASE_HELD) {
    if (is(&lease->owner, request->claim.owner)) {
      return NULL;
    }
    const bool known_dead = request->dead != NULL && is(&lease->owner, request->dead);
    if (!known_dead && !is_stale(file, lease)) {
      return "alive";
    }
  }
  const bool readable = lease->state != LEASE_UNREADABLE;
  // A controller of the same store knows the step, and goes on with it.
  const bool same_store = readable && is(&lease->store, request->store);
  if (!same_store && lease_is_running(file)) {
    return "step-runs";
  }
  return readable || file->unchanged_ns >= request->stale_ns ? NULL : "unreadable";
}

static int64_t next_fence(const struct lease* lease) {
  // Of a file that cannot be read the fence is lost; seconds since 1970 are beyond any count.
  return lease->state == LEASE_UNREADABLE ? clock_unix_ns() / NS_PER_SECOND : lease->fence + 1;
}

static void beat(const struct lease_file* file, struct lease* lease) {
  set(&lease->boot_id, file->host.boot_id);
  lease->heartbeat_ns = file->now_ns;
}

static void hand_over(const struct lease_file* file, const struct lease_request* request,
                      struct lease* lease) {
  if (lease->state != LEASE_HELD || !is(&lease->owner, request->claim.owner)) {
    lease->fence = next_fence(lease);
    lease->since_unix_ns = clock_unix_ns();
    if (!lease_is_running(file)) {
      set(&lease->run_dir, "");
    }
  }
  lease->state = LEASE_HELD;
  lease->stale_ns = request->stale_ns;
  set(&lease->owner, request->claim.owner);
  set(&lease->store, request->store);
  set(&lease->about, request->about);
  set(&lease->process, request->process);
  beat(file, lease);
}

static void refuse(const struct lease_file* file, const struct lease* lease, const char* why) {
  struct text line = {0};
  json_open(&line, NULL, '{');
  json_add_bool(&line, "granted", false);
  json_add_string(&line, "lock", file->path);
  json_add_string(&line, "why", why);
  add_holder(&line, "holder", file, lease);
  json_close(&line, '}');
  print(&line);
}

static int grant(const struct lease_file* file, const struct lease_request* request,
                 struct lease* lease) {
  struct text line = {0};
  json_open(&line, NULL, '{');
  json_add_bool(&line, "granted", true);
  json_add_string(&line, "lock", file->path);
  const bool others = lease->state == LEASE_UNREADABLE ||
                      (lease->state == LEASE_HELD && !is(&lease->owner, request->claim.owner));
  if (others) {
    add_holder(&line, "took_over", file, lease);
  } else {
    json_add_string(&line, "took_over", NULL);
  }
  hand_over(file, request, lease);
  json_add_int(&line, "fence", lease->fence);
  json_close(&line, '}');
  const int error = lease_write(file, lease, true);
  if (error != 0) {
    text_free(&line);
    return complain(file->path, error);
  }
  print(&line);
  return EXIT_OK;
}

int lease_take(const struct lease_request* request) {
  struct lease_file file;
  struct lease lease = {0};
  int error = lease_open(&file, request->claim.file, true);
  if (error == 0) {
    error = lease_read(&file, &lease);
  }
  int exit_code = EXIT_HELD;
  if (error != 0) {
    exit_code = complain(request->claim.file, error);
  } else {
    const char* why = why_not(&file, &lease, request);
    if (why == NULL) {
      exit_code = grant(&file, request, &lease);
    } else {
      refuse(&file, &lease, why);
    }
  }
  lease_free(&lease);
  lease_close(&file);
  return exit_code;
}

// --- What only the holder may do. ---

static void explain_loss(const struct lease_claim* claim, const struct lease* lease) {
  struct text t = {0};
  text_printf(&t, "br-supervise: the lease of this host is lost (fence %lld): %s",
              (long long)claim->fence, claim->file);
  if (lease->state == LEASE_FREE) {
    text_append_string(&t, " is empty or gone: the host was rebooted, or somebody deleted it");
  } else if (lease->state == LEASE_UNREADABLE) {
    text_append_string(&t, " cannot be read");
  } else {
    text_printf(&t, " is %s by ", kStates[lease->state]);
    json_quote(&t, text_string(&lease->about));
    text_printf(&t, " (fence %lld)", (long long)lease->fence);
  }
  fprintf(stderr, "%s\n", t.data);
  text_free(&t);
}

static bool is_last_holder(const struct lease_claim* claim, const struct lease* lease) {
  const bool readable = lease->state == LEASE_HELD || lease->state == LEASE_RELEASED;
  return readable && is(&lease->owner, claim->owner) && lease->fence == claim->fence;
}

// Opens the file and finds out whether the claim is true. Returns EXIT_OK, and the file open,
// if so. `may_be_over`: it is enough that nobody came after.
static int open_as_holder(const struct lease_claim* claim, bool may_be_over,
                          struct lease_file* file, struct lease* lease) {
  *lease = (struct lease){.state = LEASE_FREE};
  int error = lease_open(file, claim->file, false);
  if (error == 0) {
    error = lease_read(file, lease);
  }
  if (error != 0 && error != ENOENT) {
    lease_close(file);
    return complain(claim->file, error);
  }
  if (is_last_holder(claim, lease) && (may_be_over || lease->state == LEASE_HELD)) {
    return EXIT_OK;
  }
  refuse(file, lease, "lost");
  explain_loss(claim, lease);
  lease_close(file);
  return EXIT_HELD;
}

static int finish(const struct lease_file* file, const struct lease* lease, bool durable) {
  const int error = lease_write(file, lease, durable);
  return error == 0 ? EXIT_OK : complain(file->path, error);
}

static void print_kept(const struct lease_claim* claim) {
  struct text line = {0};
  json_open(&line, NULL, '{');
  json_add_bool(&line, "granted", true);
  json_add_string(&line, "lock", claim->file);
  json_add_int(&line, "fence", claim->fence);
  json_close(&line, '}');
  print(&line);
}

// Not synced: a heartbeat is worth nothing after a crash of the host, and a sync could disturb
// what is being measured on the same device.
int lease_renew(const struct lease_claim* claim) {
  struct lease_file file;
  struct lease lease;
  int exit_code = open_as_holder(claim, false, &file, &lease);
  if (exit_code == EXIT_OK) {
    beat(&file, &lease);
    exit_code = finish(&file, &lease, false);
    lease_close(&file);
  }
  if (exit_code == EXIT_OK) {
    print_kept(claim);
  }
  lease_free(&lease);
  return exit_code;
}

int lease_release(const struct lease_claim* claim) {
  struct lease_file file;
  struct lease lease;
  // The answer to an earlier one may have been lost on its way.
  int exit_code = open_as_holder(claim, true, &file, &lease);
  if (exit_code == EXIT_OK) {
    lease.state = LEASE_RELEASED;
    exit_code = finish(&file, &lease, true);
    lease_close(&file);
  }
  if (exit_code == EXIT_OK) {
    print_kept(claim);
  }
  lease_free(&lease);
  return exit_code;
}

int lease_admit(const struct lease_claim* claim, const char* run_dir) {
  if (claim->file == NULL) {
    return EXIT_OK;
  }
  struct lease_file file;
  struct lease lease;
  int exit_code = open_as_holder(claim, false, &file, &lease);
  if (exit_code == EXIT_OK) {
    beat(&file, &lease);
    if (run_dir != NULL) {
      set(&lease.run_dir, run_dir);
    }
    const int error = lease_mark_running(&file);
    exit_code = error == 0 ? finish(&file, &lease, false) : complain(claim->file, error);
    lease_unlock(&file);  // and stays open: that is the mark
  }
  lease_free(&lease);
  return exit_code;
}

int lease_show(const char* path) {
  struct lease_file file;
  struct lease lease = {.state = LEASE_FREE};
  int error = lease_open(&file, path, false);
  if (error == 0) {
    error = lease_read(&file, &lease);
  }
  if (error != 0 && error != ENOENT) {
    lease_close(&file);
    return complain(path, error);
  }
  struct text line = {0};
  json_open(&line, NULL, '{');
  json_add_string(&line, "lock", path);
  json_add_string(&line, "state", kStates[lease.state]);
  add_holder(&line, "holder", &file, &lease);
  json_close(&line, '}');
  print(&line);
  lease_free(&lease);
  lease_close(&file);
  return EXIT_OK;
}
