#define _GNU_SOURCE
#include "serve_run.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "json.h"

// How long pipes may stay open when the command is gone: a process that left its group can
// hold them.
static const int64_t kDrainNs = NS_PER_SECOND;

// Output beyond this is queued before the command has ended.
static const size_t kPartBytes = (size_t)256 << 10;

bool run_begin(struct run_job* run, const struct demand* demand, const struct frame* frame,
               struct wire* wire) {
  *run = (struct run_job){.limit_ns = INT64_MAX, .drain_limit_ns = INT64_MAX};
  run->status_slot = run->input_slot = run->output_slots[0] = run->output_slots[1] = -1;
  const int error = spawn(demand, frame->input_bytes > 0, &run->process);
  if (error != 0) {
    answer_error(wire, demand->id, "exec", strerror(error));
    return false;
  }
  if (frame->input_bytes > 0) {
    text_append(&run->input, frame->input, frame->input_bytes);
  }
  if (demand->timeout_ns >= 0) {
    run->limit_ns = clock_monotonic_ns() + demand->timeout_ns;
  }
  return true;
}

void run_free(struct run_job* run) {
  spawned_close(&run->process);
  text_free(&run->input);
  text_free(&run->output[0]);
  text_free(&run->output[1]);
}

static bool is_open(const struct run_job* run) {
  return run->process.output[0] >= 0 || run->process.output[1] >= 0;
}

void run_watch(struct run_job* run, struct poll_set* set, bool bulk) {
  run->status_slot = poll_watch(set, run->process.status, POLLIN);
  run->input_slot = poll_watch(set, run->process.input, POLLOUT);
  const bool wants_output = bulk || run->verdict != NULL;  // then it is thrown away
  for (int i = 0; i < 2; i++) {
    run->output_slots[i] = wants_output ? poll_watch(set, run->process.output[i], POLLIN) : -1;
  }
  if (run->verdict == NULL) {
    poll_wake_by(set, run->limit_ns);
  }
  if (!run->answered && (bulk || run->verdict != NULL)) {
    poll_wake_by(set, run->drain_limit_ns);
  }
}

static void send_input(struct run_job* run) {
  const ssize_t n = write(run->process.input, run->input.data + run->input_sent,
                          run->input.length - run->input_sent);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
    return;
  }
  run->input_sent += n < 0 ? 0 : (size_t)n;
  if (n < 0 || run->input_sent == run->input.length) {  // all of it, or nobody wants the rest
    close_descriptor(&run->process.input);
    text_free(&run->input);
  }
}

// True when there may be more at once.
static bool take_output(struct run_job* run, int stream) {
  char chunk[65536];
  const ssize_t n = read(run->process.output[stream], chunk, sizeof chunk);
  if (n > 0 && run->verdict == NULL) {
    text_append(&run->output[stream], chunk, (size_t)n);
  }
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
    close_descriptor(&run->process.output[stream]);
  }
  return n > 0;
}

static void take_failure(struct run_job* run) {
  const ssize_t n = read(run->process.status, &run->failure, sizeof run->failure);
  if (n >= 0 || errno != EINTR) {
    close_descriptor(&run->process.status);
  }
}

static void queue_output(struct run_job* run, struct text* answer, struct wire* wire) {
  json_add_int(answer, "stdout_bytes", (int64_t)run->output[0].length);
  json_add_int(answer, "stderr_bytes", (int64_t)run->output[1].length);
  answer_send(wire, answer);
  for (int i = 0; i < 2; i++) {
    wire_append(wire, run->output[i].data, run->output[i].length);
    text_clear(&run->output[i]);
  }
}

static void queue_part(struct run_job* run, int64_t id, struct wire* wire) {
  struct text answer = {0};
  answer_open(&answer, id);
  json_add_bool(&answer, "more", true);
  queue_output(run, &answer, wire);
}

static void answer_failure(const struct run_job* run, int64_t id, struct wire* wire) {
  const char* error = "exec";
  if (run->failure.error == ENOENT && run->failure.stage == SPAWN_EXECUTE) {
    error = "not-found";
  } else if (run->failure.error == ENOENT && run->failure.stage == SPAWN_CHANGE_DIRECTORY) {
    error = "no-cwd";
  }
  answer_error(wire, id, error, strerror(run->failure.error));
}

// How the process ended; it stays a zombie.
static int exit_code(const struct run_job* run) {
  siginfo_t end = {0};
  waitid(P_PID, (id_t)run->process.pid, &end, WEXITED | WNOHANG | WNOWAIT);
  return end.si_code == CLD_EXITED ? end.si_status : -end.si_status;
}

static void answer(struct run_job* run, int64_t id, struct wire* wire) {
  run->answered = true;
  if (run->verdict != NULL) {
    answer_error(wire, id, run->verdict, NULL);
  } else if (run->failure.stage != 0) {
    answer_failure(run, id, wire);
  } else {
    struct text end = {0};
    answer_open(&end, id);
    json_add_int(&end, "exit_code", exit_code(run));
    queue_output(run, &end, wire);
  }
}

void run_kill(struct run_job* run, const char* verdict) {
  if (run->verdict != NULL || run->answered) {
    return;
  }
  run->verdict = verdict;
  run->drain_limit_ns = clock_monotonic_ns() + kDrainNs;
  text_free(&run->output[0]);
  text_free(&run->output[1]);
  if (kill(-run->process.pid, SIGKILL) != 0) {
    kill(run->process.pid, SIGKILL);  // it has not come to its setsid() yet
  }
}

void run_look(struct run_job* run) {
  siginfo_t end = {0};
  if (run->ended ||
      waitid(P_PID, (id_t)run->process.pid, &end, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      end.si_pid == 0) {
    return;
  }
  run->ended = true;
  if (run->verdict == NULL) {
    run->drain_limit_ns = clock_monotonic_ns() + kDrainNs;
  }
}

// The process is gone and something holds its pipes open. Who stayed in the group is still
// part of the command; who left it is not waited for.
static bool is_drained(struct run_job* run, int64_t now_ns, bool bulk) {
  if (!bulk) {
    return false;  // what the pipes hold has not even been read
  }
  if (group_has_others(run->process.pid)) {
    run->drain_limit_ns = now_ns + kDrainNs;
    return false;
  }
  for (int i = 0; i < 2; i++) {
    while (run->process.output[i] >= 0 && run->output[i].length < 4 * kPartBytes &&
           take_output(run, i)) {
    }
  }
  return true;
}

static bool is_answerable(struct run_job* run, bool bulk) {
  if (run->ended && !is_open(run) && run->process.status < 0) {
    return true;
  }
  const int64_t now_ns = clock_monotonic_ns();
  if (now_ns < run->drain_limit_ns) {
    return false;
  }
  return run->verdict != NULL || (run->ended && is_drained(run, now_ns, bulk));
}

bool run_advance(struct run_job* run, int64_t id, const struct poll_set* set, bool bulk,
                 struct wire* wire) {
  if (poll_is_ready(set, run->status_slot)) {
    take_failure(run);
  }
  if (poll_is_ready(set, run->input_slot)) {
    send_input(run);
  }
  for (int i = 0; i < 2; i++) {
    if (poll_is_ready(set, run->output_slots[i])) {
      take_output(run, i);
    }
  }
  if (!run->answered && run->output[0].length + run->output[1].length >= kPartBytes) {
    queue_part(run, id, wire);
  }
  if (run->verdict == NULL && clock_monotonic_ns() >= run->limit_ns) {
    run_kill(run, "timeout");
  }
  if (!run->answered && is_answerable(run, bulk)) {
    answer(run, id, wire);
    spawned_close(&run->process);
  }
  if (run->answered && run->ended) {
    waitpid(run->process.pid, NULL, 0);
    return true;
  }
  return false;
}
