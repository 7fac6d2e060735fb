#include <getopt.h>
#include <stddef.h>
#include <string.h>

#include "lease.h"
#include "lease_file.h"
#include "options.h"

enum option_id {
  OPTION_LOCK = 256,
  OPTION_OWNER,
  OPTION_FENCE,
  OPTION_STORE,
  OPTION_ABOUT,
  OPTION_PROCESS,
  OPTION_DEAD,
  OPTION_STALE,
};

static const struct option kTakeOptions[] = {{"lock", required_argument, NULL, OPTION_LOCK},
                                             {"owner", required_argument, NULL, OPTION_OWNER},
                                             {"store", required_argument, NULL, OPTION_STORE},
                                             {"about", required_argument, NULL, OPTION_ABOUT},
                                             {"process", required_argument, NULL, OPTION_PROCESS},
                                             {"dead", required_argument, NULL, OPTION_DEAD},
                                             {"stale", required_argument, NULL, OPTION_STALE},
                                             {0}};

static const struct option kHolderOptions[] = {{"lock", required_argument, NULL, OPTION_LOCK},
                                               {"owner", required_argument, NULL, OPTION_OWNER},
                                               {"fence", required_argument, NULL, OPTION_FENCE},
                                               {0}};

static const struct option kShowOptions[] = {{"lock", required_argument, NULL, OPTION_LOCK}, {0}};

enum lease_verb { TAKE, RENEW, RELEASE, SHOW };

static const struct lease_verb_options {
  const char* name;
  const struct option* options;
} kVerbs[] = {[TAKE] = {"take", kTakeOptions},
              [RENEW] = {"renew", kHolderOptions},
              [RELEASE] = {"release", kHolderOptions},
              [SHOW] = {"show", kShowOptions}};

static void apply(struct lease_request* r, int id, const char* value) {
  switch (id) {
    case OPTION_LOCK:
      r->claim.file = absolute(not_empty("--lock", value));
      break;
    case OPTION_OWNER:
      r->claim.owner = not_empty("--owner", value);
      break;
    case OPTION_FENCE:
      r->claim.fence = parse_fence(value);
      break;
    case OPTION_STORE:
      r->store = not_empty("--store", value);
      break;
    case OPTION_ABOUT:
      r->about = not_empty("--about", value);
      break;
    case OPTION_PROCESS:
      r->process = value;
      break;
    case OPTION_DEAD:
      r->dead = not_empty("--dead", value);
      break;
    default:
      r->stale_ns = parse_seconds("--stale", value, 0.01);
  }
}

static void parse(int argc, char** argv, const struct option* known, struct lease_request* r) {
  int id;
  optind = 1;
  while ((id = next_option(argc, argv, known, "lease ")) != -1) {
    apply(r, id, optarg);
  }
  if (optind < argc) {
    usage_error("lease %s: unexpected argument '%s'", argv[0], argv[optind]);
  }
}

static enum lease_verb find_verb(const char* word) {
  for (int v = TAKE; v <= SHOW; v++) {
    if (strcmp(word, kVerbs[v].name) == 0) {
      return (enum lease_verb)v;
    }
  }
  usage_error("lease: '%s' is none of take, renew, release, show", word);
}

static int take(struct lease_request* r) {
  if (r->claim.owner == NULL || r->store == NULL || r->about == NULL || r->stale_ns == 0) {
    usage_error("lease take: needs --owner, --store, --about and --stale");
  }
  if (r->claim.file == NULL) {
    r->claim.file = lease_default_path();
  }
  return lease_take(r);
}

int lease_command(int argc, char** argv) {
  if (argc < 2) {
    usage_error("lease: needs one of take, renew, release, show");
  }
  struct lease_request request = {.process = ""};
  const enum lease_verb verb = find_verb(argv[1]);
  parse(argc - 1, argv + 1, kVerbs[verb].options, &request);
  const struct lease_claim* claim = &request.claim;
  if (verb == TAKE) {
    return take(&request);
  }
  if (verb == SHOW) {
    return lease_show(claim->file == NULL ? lease_default_path() : claim->file);
  }
  if (claim->file == NULL || claim->owner == NULL || claim->fence == 0) {
    usage_error("lease %s: needs --lock, --owner and --fence", argv[1]);
  }
  return verb == RENEW ? lease_renew(claim) : lease_release(claim);
}
