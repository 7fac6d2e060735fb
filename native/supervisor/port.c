#define _GNU_SOURCE
#include "port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "front.h"
#include "inspect.h"
#include "json.h"
#include "listener.h"
#include "options.h"
#include "text.h"

static const int64_t kFirstPauseNs = NS_PER_MS;
static const int64_t kLongestPauseNs = 20 * NS_PER_MS;
static const int kConnectLimitMs = 1000;

struct port_request {
  int port;  // 0 = not given
  bool wait;
  const char* run_dir;
  int64_t timeout_ns;
};

enum option_id { OPTION_FREE = 256, OPTION_WAIT, OPTION_RUN_DIR, OPTION_TIMEOUT };

static const struct option kOptions[] = {{"free", required_argument, NULL, OPTION_FREE},
                                         {"wait", required_argument, NULL, OPTION_WAIT},
                                         {"run-dir", required_argument, NULL, OPTION_RUN_DIR},
                                         {"timeout", required_argument, NULL, OPTION_TIMEOUT},
                                         {0}};

static int parse_port(const char* option, const char* text) {
  char* end;
  const long port = strtol(text, &end, 10);
  if (end == text || *end != '\0' || port < 1 || port > 65535) {
    usage_error("%s: '%s' is not a port: a number from 1 to 65535", option, text);
  }
  return (int)port;
}

static void apply(struct port_request* r, int id, const char* value) {
  if (id == OPTION_RUN_DIR) {
    r->run_dir = absolute(not_empty("--run-dir", value));
  } else if (id == OPTION_TIMEOUT) {
    r->timeout_ns = parse_seconds("--timeout", value, 0);
  } else {
    if (r->port != 0) {
      usage_error("port: one of --free and --wait, once");
    }
    r->wait = id == OPTION_WAIT;
    r->port = parse_port(r->wait ? "--wait" : "--free", value);
  }
}

static struct port_request parse(int argc, char** argv) {
  struct port_request r = {0};
  int id;
  opterr = 0;
  optind = 1;
  while ((id = getopt_long(argc, argv, "+:", kOptions, NULL)) != -1) {
    if (id == ':') {
      usage_error("%s needs a value", argv[optind - 1]);
    }
    if (id == '?') {
      usage_error("port: unknown option %s", argv[optind - 1]);
    }
    apply(&r, id, optarg);
  }
  if (optind < argc) {
    usage_error("port: unexpected argument '%s'", argv[optind]);
  }
  if (r.port == 0) {
    usage_error("port: needs --free N or --wait N");
  }
  if (r.wait != (r.run_dir != NULL)) {
    usage_error(r.wait ? "port --wait: needs --run-dir" : "port --free: takes no --run-dir");
  }
  return r;
}

static struct sockaddr_in loopback(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Returns 0 when a server could take the port now, else an errno. Connections of an earlier server
// that are not quite over do not count: servers ask for just that.
static int try_bind(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    return errno;
  }
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const struct sockaddr_in address = loopback(port);
  const int error = bind(fd, (const struct sockaddr*)&address, sizeof address) == 0 ? 0 : errno;
  close(fd);
  return error;
}

// Whether somebody takes a connection. Nothing is sent: it is closed again.
static bool answers(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) {
    return false;
  }
  const struct sockaddr_in address = loopback(port);
  int error = connect(fd, (const struct sockaddr*)&address, sizeof address) == 0 ? 0 : errno;
  struct pollfd wanted = {.fd = fd, .events = POLLOUT};
  if (error == EINPROGRESS && poll(&wanted, 1, kConnectLimitMs) == 1) {
    socklen_t size = sizeof error;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  }
  close(fd);
  return error == 0;
}

static void add_listener(struct text* line, int port) {
  struct listener listener;
  listener_find(port, &listener);
  json_add_int(line, "pid", listener.pid == 0 ? JSON_UNKNOWN : listener.pid);
  json_add_string(line, "command", listener.command[0] == '\0' ? NULL : listener.command);
}

static int print(struct text* line) {
  json_close(line, '}');
  puts(line->data);
  text_free(line);
  return EXIT_OK;
}

static int tell_free(int port) {
  const int error = try_bind(port);
  struct text line = {0};
  json_open(&line, NULL, '{');
  json_add_int(&line, "port", port);
  json_add_bool(&line, "free", error == 0);
  if (error != 0) {
    json_add_string(&line, "error", strerror(error));
    add_listener(&line, port);
  }
  return print(&line);
}

static const char* state_of_run(const char* run_dir) {
  static const char* const kNames[] = {"absent", "running", "finished", "lost"};
  struct run_folder folder;
  if (folder_open(&folder, run_dir) != 0) {
    return kNames[RUN_ABSENT];
  }
  struct host host;
  host_read(&host);
  struct inspection inspection;
  inspect_run(&folder, &host, &inspection);
  const char* name = kNames[inspection.state];
  inspection_free(&inspection);
  folder_close(&folder);
  return name;
}

static int wait_for_answer(const struct port_request* r) {
  const int64_t began_ns = clock_monotonic_ns();
  int64_t pause_ns = kFirstPauseNs;
  bool answered = answers(r->port);
  const char* state = state_of_run(r->run_dir);  // after the answer: whose else would it be
  while (!answered && strcmp(state, "running") == 0 &&
         clock_monotonic_ns() - began_ns < r->timeout_ns) {
    clock_sleep_ns(pause_ns);
    pause_ns = 2 * pause_ns < kLongestPauseNs ? 2 * pause_ns : kLongestPauseNs;
    answered = answers(r->port);
    state = state_of_run(r->run_dir);
  }
  struct text line = {0};
  json_open(&line, NULL, '{');
  json_add_int(&line, "port", r->port);
  json_add_bool(&line, "answers", answered);
  json_add_string(&line, "state", state);
  json_add_decimal(&line, "waited_s", clock_monotonic_ns() - began_ns, 9);
  if (answered) {
    add_listener(&line, r->port);
  }
  return print(&line);
}

int port_command(int argc, char** argv) {
  const struct port_request request = parse(argc, argv);
  return request.wait ? wait_for_answer(&request) : tell_free(request.port);
}
