#define _GNU_SOURCE
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "front.h"
#include "text.h"

enum option_id {
  OPTION_RUN_DIR = 256,
  OPTION_TIMEOUT,
  OPTION_GRACE,
  OPTION_INTERVAL,
  OPTION_DU,
  OPTION_DEVICE_OF,
  OPTION_ENV,
  OPTION_CLEAR_ENV,
  OPTION_CWD,
  OPTION_RUN_ID,
  OPTION_FOREGROUND,
  OPTION_IN,
  OPTION_FRESH,
  OPTION_MAKE,
  OPTION_MARKER,
  OPTION_LEASE,
  OPTION_OWNER,
  OPTION_FENCE,
  OPTION_AWAIT,
  OPTION_LIMIT,
  OPTION_NEWEST_IN,
  OPTION_GLOB,
};

#define LEASE_OPTIONS                                   \
  {"lease", required_argument, NULL, OPTION_LEASE},     \
      {"owner", required_argument, NULL, OPTION_OWNER}, \
      {"fence", required_argument, NULL, OPTION_FENCE}

static const struct option kNoOptions[] = {{0}};

static const struct option kStateOptions[] = {{"run-dir", required_argument, NULL, OPTION_RUN_DIR},
                                              {0}};

static const struct option kStopOptions[] = {{"run-dir", required_argument, NULL, OPTION_RUN_DIR},
                                             {"grace", required_argument, NULL, OPTION_GRACE},
                                             {0}};

static const struct option kStartOptions[] = {
    {"run-dir", required_argument, NULL, OPTION_RUN_DIR},
    {"timeout", required_argument, NULL, OPTION_TIMEOUT},
    {"grace", required_argument, NULL, OPTION_GRACE},
    {"interval", required_argument, NULL, OPTION_INTERVAL},
    {"du", required_argument, NULL, OPTION_DU},
    {"device-of", required_argument, NULL, OPTION_DEVICE_OF},
    {"env", required_argument, NULL, OPTION_ENV},
    {"clear-env", no_argument, NULL, OPTION_CLEAR_ENV},
    {"cwd", required_argument, NULL, OPTION_CWD},
    {"run-id", required_argument, NULL, OPTION_RUN_ID},
    {"foreground", no_argument, NULL, OPTION_FOREGROUND},
    {"in", required_argument, NULL, OPTION_IN},
    {"fresh", required_argument, NULL, OPTION_FRESH},
    {"make", required_argument, NULL, OPTION_MAKE},
    {"marker", required_argument, NULL, OPTION_MARKER},
    {"await", required_argument, NULL, OPTION_AWAIT},
    {"limit", required_argument, NULL, OPTION_LIMIT},
    {"newest-in", required_argument, NULL, OPTION_NEWEST_IN},
    {"glob", required_argument, NULL, OPTION_GLOB},
    LEASE_OPTIONS,
    {0}};

static const struct option kPackOptions[] = {{"run-dir", required_argument, NULL, OPTION_RUN_DIR},
                                             {"limit", required_argument, NULL, OPTION_LIMIT},
                                             {"newest-in", required_argument, NULL, OPTION_NEWEST_IN},
                                             {"glob", required_argument, NULL, OPTION_GLOB},
                                             {0}};

static const struct option kFreshOptions[] = {{"in", required_argument, NULL, OPTION_IN},
                                              {"fresh", required_argument, NULL, OPTION_FRESH},
                                              {"make", required_argument, NULL, OPTION_MAKE},
                                              {"marker", required_argument, NULL, OPTION_MARKER},
                                              LEASE_OPTIONS,
                                              {0}};

static const struct option kRemoveOptions[] = {{"in", required_argument, NULL, OPTION_IN},
                                               {"folder", required_argument, NULL, OPTION_FRESH},
                                               LEASE_OPTIONS,
                                               {0}};

static const struct verb_options {
  const char* name;
  const struct option* options;
} kVerbs[] = {[VERB_START] = {"start", kStartOptions},
              [VERB_STATE] = {"state", kStateOptions},
              [VERB_STOP] = {"stop", kStopOptions},
              [VERB_DU] = {"du", kNoOptions},
              [VERB_FRESH] = {"fresh", kFreshOptions},
              [VERB_REMOVE] = {"remove", kRemoveOptions},
              [VERB_PACK] = {"pack", kPackOptions},
              [VERB_HELP] = {"--help", kNoOptions},
              [VERB_VERSION] = {"--version", kNoOptions}};

void usage_error(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("br-supervise: ", stderr);
  vfprintf(stderr, format, arguments);
  fputs(" (see br-supervise --help)\n", stderr);
  va_end(arguments);
  exit(EXIT_USAGE);
}

int64_t parse_seconds(const char* option, const char* text, double least) {
  char* end;
  const double seconds = strtod(text, &end);
  if (end == text || *end != '\0' || !isfinite(seconds)) {
    usage_error("%s: '%s' is not a number of seconds", option, text);
  }
  if (seconds < least || seconds > 1e8) {
    usage_error("%s: %s seconds is out of range, which begins at %g", option, text, least);
  }
  return (int64_t)(seconds * (double)NS_PER_SECOND);
}

static char* current_directory(void) {
  char* cwd = getcwd(NULL, 0);
  if (cwd == NULL) {
    usage_error("the current directory is unknown: %s", strerror(errno));
  }
  return cwd;
}

// Not canonical: the directory need not exist yet.
const char* absolute(const char* path) {
  if (path[0] == '/') {
    return path;
  }
  char* cwd = current_directory();
  struct text t = {0};
  text_printf(&t, "%s/%s", strcmp(cwd, "/") == 0 ? "" : cwd, path);
  free(cwd);
  return t.data;
}

// Appends to a NULL-terminated list.
static const char* const* with(const char* const* list, const char* item) {
  size_t count = 0;
  while (list != NULL && list[count] != NULL) {
    count++;
  }
  const char** longer = checked_realloc((void*)(uintptr_t)list, (count + 2) * sizeof *longer);
  longer[count] = item;
  longer[count + 1] = NULL;
  return longer;
}

static const char* checked_env(const char* entry) {
  const char* sign = strchr(entry, '=');
  if (sign == NULL || sign == entry) {
    usage_error("--env: '%s' is not of the form NAME=VALUE", entry);
  }
  return entry;
}

const char* not_empty(const char* option, const char* value) {
  if (value[0] == '\0') {
    usage_error("%s needs a value", option);
  }
  return value;
}

static int64_t parse_bytes(const char* option, const char* text) {
  char* end;
  errno = 0;
  const long long bytes = strtoll(text, &end, 10);
  if (end == text || *end != '\0' || errno != 0 || bytes < 0) {
    usage_error("%s: '%s' is not a number of bytes", option, text);
  }
  return bytes;
}

static void apply_pack(struct pack_request* pack, int id, const char* value) {
  if (id == OPTION_LIMIT) {
    pack->limit_bytes = parse_bytes("--limit", value);
  } else if (id == OPTION_NEWEST_IN) {
    pack->newest_in = absolute(not_empty("--newest-in", value));
  } else {
    pack->glob = not_empty("--glob", value);
  }
}

int64_t parse_fence(const char* text) {
  char* end;
  errno = 0;
  const long long fence = strtoll(text, &end, 10);
  if (end == text || *end != '\0' || errno != 0 || fence < 1) {
    usage_error("--fence: '%s' is not a number from 1 on", text);
  }
  return fence;
}

static void apply_lease(struct lease_claim* lease, int id, const char* value) {
  if (id == OPTION_LEASE) {
    lease->file = absolute(not_empty("--lease", value));
  } else if (id == OPTION_OWNER) {
    lease->owner = not_empty("--owner", value);
  } else {
    lease->fence = parse_fence(value);
  }
}

static void apply_path(struct request* r, int id, const char* value) {
  if (id == OPTION_RUN_DIR) {
    r->run_dir = absolute(not_empty("--run-dir", value));
  } else if (id == OPTION_CWD) {
    r->cwd = absolute(not_empty("--cwd", value));
  } else if (id == OPTION_DEVICE_OF) {
    r->device_directory = absolute(not_empty("--device-of", value));
  } else {
    r->du_directories = with(r->du_directories, absolute(not_empty("--du", value)));
    r->du_count++;
  }
}

// A folder belongs to the directory that was named last.
static void add_folder(struct our_folders* folders, const char* path) {
  if (folders->count == 0 || folders->items[folders->count - 1].path != NULL) {
    usage_error("%s: needs --in DIR before it", path);
  }
  folders->items[folders->count - 1].path = absolute(path);
}

static void add_work(struct our_folders* folders, const char* path) {
  const size_t size = (folders->count + 1) * sizeof *folders->items;
  folders->items = checked_realloc(folders->items, size);
  folders->items[folders->count++] = (struct our_folder){.work = absolute(path)};
}

static void apply_folder(struct our_folders* folders, int id, const char* value) {
  switch (id) {
    case OPTION_IN:
      add_work(folders, not_empty("--in", value));
      break;
    case OPTION_FRESH:
      add_folder(folders, not_empty("--fresh", value));
      break;
    case OPTION_MAKE:
      folders->inside = with(folders->inside, absolute(not_empty("--make", value)));
      break;
    default:
      folders->marker = value;
  }
}

static void apply(struct options* o, int id, const char* value) {
  struct request* r = &o->request;
  switch (id) {
    case OPTION_TIMEOUT:
      r->timeout_ns = parse_seconds("--timeout", value, 0.001);
      break;
    case OPTION_GRACE:
      r->grace_ns = o->stop_grace_ns = parse_seconds("--grace", value, 0);
      break;
    case OPTION_INTERVAL:
      r->interval_ns = parse_seconds("--interval", value, 0.01);
      break;
    case OPTION_ENV:
      r->env = with(r->env, checked_env(value));
      break;
    case OPTION_CLEAR_ENV:
      r->clear_env = true;
      break;
    case OPTION_RUN_ID:
      r->run_id = not_empty("--run-id", value);
      break;
    case OPTION_FOREGROUND:
      r->foreground = true;
      break;
    case OPTION_IN:
    case OPTION_FRESH:
    case OPTION_MAKE:
    case OPTION_MARKER:
      apply_folder(&r->fresh, id, value);
      break;
    case OPTION_AWAIT:
      r->await_ns = parse_seconds("--await", value, 0);
      break;
    case OPTION_LIMIT:
      r->pack = &o->pack;
      apply_pack(&o->pack, id, value);
      break;
    case OPTION_NEWEST_IN:
    case OPTION_GLOB:
      apply_pack(&o->pack, id, value);
      break;
    case OPTION_LEASE:
    case OPTION_OWNER:
    case OPTION_FENCE:
      apply_lease(&o->lease, id, value);
      break;
    default:
      apply_path(r, id, value);
  }
}

int next_option(int argc, char** argv, const struct option* known, const char* family) {
  opterr = 0;
  const int id = getopt_long(argc, argv, "+:", known, NULL);
  if (id == ':') {
    usage_error("%s needs a value", argv[optind - 1]);
  }
  if (id == '?') {
    usage_error("%s%s: unknown option %s", family, argv[0], argv[optind - 1]);
  }
  return id;
}

// Returns the index of the first argument that is not an option.
static int parse_options(int argc, char** argv, const struct option* known, struct options* o) {
  int id;
  optind = 1;
  while ((id = next_option(argc, argv, known, "")) != -1) {
    apply(o, id, optarg);
  }
  return optind;
}

static enum verb find_verb(const char* word) {
  for (int v = VERB_START; v <= VERB_VERSION; v++) {
    if (strcmp(word, kVerbs[v].name) == 0) {
      return (enum verb)v;
    }
  }
  usage_error("'%s' is none of start, state, stop, du, fresh, remove, pack, lease, serve, --help, --version", word);
}

static void finish_folders(const char* verb, struct our_folders* folders, bool required) {
  if (required && folders->count == 0) {
    usage_error("%s: needs --in DIR and the folder in it", verb);
  }
  if (folders->count > 0 && folders->items[folders->count - 1].path == NULL) {
    usage_error("%s: --in %s needs a folder after it", verb,
                folders->items[folders->count - 1].work);
  }
  if (folders->marker == NULL) {
    folders->marker = "{}";
  }
}

static void finish_lease(const char* verb, const struct lease_claim* lease) {
  const int given = (lease->file != NULL) + (lease->owner != NULL) + (lease->fence != 0);
  if (given != 0 && given != 3) {
    usage_error("%s: --lease, --owner and --fence go together", verb);
  }
}

static void finish_start(int first, int argc, char** argv, struct request* r) {
  if (strcmp(argv[first - 1], "--") != 0 || first == argc || argv[first][0] == '\0') {
    usage_error("start: needs -- and the command to run after its options");
  }
  r->argv = argv + first;
  if (r->foreground && r->fresh.count > 0) {
    usage_error("start: --foreground does not go with --fresh: run br-supervise fresh first");
  }
  if (r->cwd == NULL) {
    r->cwd = current_directory();
  }
  if (r->env == NULL) {
    r->env = with(NULL, NULL);
  }
}

void options_parse(int argc, char** argv, struct options* o) {
  *o = (struct options){
      .stop_grace_ns = -1,
      .pack.limit_bytes = INT64_MAX,
      .request = {.grace_ns = 5 * NS_PER_SECOND, .interval_ns = NS_PER_SECOND}};
  if (argc < 2) {
    usage_error("needs one of start, state, stop, du, fresh, remove, pack, lease, serve");
  }
  o->verb = find_verb(argv[1]);
  const int first = parse_options(argc - 1, argv + 1, kVerbs[o->verb].options, o) + 1;
  const bool has_run_dir = o->verb == VERB_START || o->verb == VERB_STATE ||
                           o->verb == VERB_STOP || o->verb == VERB_PACK;
  if (has_run_dir && o->request.run_dir == NULL) {
    usage_error("%s: needs --run-dir DIR", argv[1]);
  }
  finish_folders(argv[1], &o->request.fresh, o->verb == VERB_FRESH || o->verb == VERB_REMOVE);
  finish_lease(argv[1], &o->lease);
  o->pack.run_dir = o->request.run_dir;
  if ((o->pack.newest_in == NULL) != (o->pack.glob == NULL)) {
    usage_error("pack: --newest-in and --glob go together");
  }
  if (o->verb == VERB_START) {
    finish_start(first, argc, argv, &o->request);
  } else if (o->verb == VERB_DU) {
    o->directories = argv + first;
    o->directory_count = (size_t)(argc - first);
    if (first == argc) {
      usage_error("du: needs at least one directory");
    }
  } else if (first < argc) {
    usage_error("%s: unexpected argument '%s'", argv[1], argv[first]);
  }
}
