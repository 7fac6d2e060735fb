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

enum option_id {
  OPTION_FREE = 256,
  OPTION_WAIT,
  OPTION_REACH,
  OPTION_ADDRESS,
  OPTION_RUN_DIR,
  OPTION_TIMEOUT
};

struct port_request {
  struct sockaddr_in address;  // port 0 = not given
  enum option_id what;
  const char* run_dir;
  int64_t timeout_ns;
};

static const struct option kOptions[] = {{"free", required_argument, NULL, OPTION_FREE},
                                         {"wait", required_argument, NULL, OPTION_WAIT},
                                         {"reach", required_argument, NULL, OPTION_REACH},
                                         {"address", required_argument, NULL, OPTION_ADDRESS},
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

static const char* name_of(int id) {
  const struct option* option = kOptions;
  while (option->val != id) {
    option++;
  }
  return option->name;
}

static void apply(struct port_request* r, int id, const char* value) {
  if (id == OPTION_RUN_DIR) {
    r->run_dir = absolute(not_empty("--run-dir", value));
  } else if (id == OPTION_TIMEOUT) {
    r->timeout_ns = parse_seconds("--timeout", value, 0);
  } else if (id == OPTION_ADDRESS) {
    if (inet_pton(AF_INET, value, &r->address.sin_addr) != 1) {
      usage_error("--address: '%s' is not an IPv4 address", value);
    }
  } else {
    if (r->address.sin_port != 0) {
      usage_error("port: one of --free, --wait and --reach, once");
    }
    char option[16];
    snprintf(option, sizeof option, "--%s", name_of(id));
    r->what = (enum option_id)id;
    r->address.sin_port = htons((uint16_t)parse_port(option, value));
  }
}

static struct port_request parse(int argc, char** argv) {
  struct port_request r = {.address = {.sin_family = AF_INET}};
  r.address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int id;
  optind = 1;
  while ((id = next_option(argc, argv, kOptions, "")) != -1) {
    apply(&r, id, optarg);
  }
  if (optind < argc) {
    usage_error("port: unexpected argument '%s'", argv[optind]);
  }
  if (r.address.sin_port == 0) {
    usage_error("port: needs --free N, --wait N or --reach N");
  }
  if ((r.what == OPTION_WAIT) != (r.run_dir != NULL)) {
    const char* says = r.what == OPTION_WAIT ? "needs" : "takes no";
    usage_error("port --%s: %s --run-dir", name_of(r.what), says);
  }
  return r;
}

static int port_of(const struct port_request* r) {
  return ntohs(r->address.sin_port);
}

// Returns 0 when a server could take the port now, else an errno. Connections of an earlier server
// that are not quite over do not count: servers ask for just that.
static int try_bind(const struct sockaddr_in* address) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    return errno;
  }
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const int error = bind(fd, (const struct sockaddr*)address, sizeof *address) == 0 ? 0 : errno;
  close(fd);
  return error;
}

// Returns 0 when somebody takes a connection, else an errno. Nothing is sent: it is closed again.
static int try_connect(const struct sockaddr_in* address) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) {
    return errno;
  }
  int error = connect(fd, (const struct sockaddr*)address, sizeof *address) == 0 ? 0 : errno;
  struct pollfd wanted = {.fd = fd, .events = POLLOUT};
  if (error == EINPROGRESS) {
    error = ETIMEDOUT;
    if (poll(&wanted, 1, kConnectLimitMs) == 1) {
      socklen_t size = sizeof error;
      getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    }
  }
  close(fd);
  return error;
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

static int tell_free(const struct port_request* r) {
  const int error = try_bind(&r->address);
  struct text line = {0};
  json_open(&line, NULL, '{');
  json_add_int(&line, "port", port_of(r));
  json_add_bool(&line, "free", error == 0);
  if (error != 0) {
    json_add_string(&line, "error", strerror(error));
    add_listener(&line, port_of(r));
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

// Of a server on this host, with the state of its run; or of one on another host, without.
static int wait_for_answer(const struct port_request* r) {
  const bool is_here = r->what == OPTION_WAIT;
  const int64_t began_ns = clock_monotonic_ns();
  int64_t pause_ns = kFirstPauseNs;
  int error = try_connect(&r->address);
  // After the answer: whose else would it be.
  const char* state = is_here ? state_of_run(r->run_dir) : "running";
  while (error != 0 && strcmp(state, "running") == 0 &&
         clock_monotonic_ns() - began_ns < r->timeout_ns) {
    clock_sleep_ns(pause_ns);
    pause_ns = 2 * pause_ns < kLongestPauseNs ? 2 * pause_ns : kLongestPauseNs;
    error = try_connect(&r->address);
    state = is_here ? state_of_run(r->run_dir) : "running";
  }
  struct text line = {0};
  json_open(&line, NULL, '{');
  json_add_int(&line, "port", port_of(r));
  json_add_bool(&line, "answers", error == 0);
  if (is_here) {
    json_add_string(&line, "state", state);
  } else if (error != 0) {
    json_add_string(&line, "error", strerror(error));
  }
  json_add_decimal(&line, "waited_s", clock_monotonic_ns() - began_ns, 9);
  if (is_here && error == 0) {
    add_listener(&line, port_of(r));
  }
  return print(&line);
}

int port_command(int argc, char** argv) {
  const struct port_request request = parse(argc, argv);
  return request.what == OPTION_FREE ? tell_free(&request) : wait_for_answer(&request);
}
