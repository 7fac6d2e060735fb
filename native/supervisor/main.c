#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "du.h"
#include "files.h"
#include "front.h"
#include "inspect.h"
#include "lease.h"
#include "options.h"
#include "ours.h"
#include "pack.h"
#include "port.h"
#include "serve.h"
#include "start.h"
#include "stop.h"
#include "version.h"

static const char kHelp[] =
    "br-supervise " BR_VERSION
    ": runs one command, samples it, ends all of it, and records how it went\n"
    "\n"
    "  br-supervise start --run-dir DIR [option]... -- COMMAND [ARGUMENT]...\n"
    "      --timeout S       end the process tree after S seconds (default: no limit)\n"
    "      --grace S         seconds between SIGTERM and SIGKILL (default: 5)\n"
    "      --interval S      seconds between samples (default: 1)\n"
    "      --du DIR          measure the disk usage of DIR; may be repeated\n"
    "      --device-of DIR   sample the block device below DIR\n"
    "      --env NAME=VALUE  add to the command's environment; may be repeated\n"
    "      --clear-env       start from an empty environment\n"
    "      --cwd DIR         the command's working directory (default: this one)\n"
    "      --run-id ID       mark the command's processes with ID (default: the run folder)\n"
    "      --foreground      stay until the run has ended\n"
    "      --in DIR --fresh FOLDER ... --make DIR ... --marker TEXT\n"
    "                        first what `fresh` does, unless the run was started already\n"
    "      --await S         stay up to S seconds; print the state as well if it ended\n"
    "      --limit BYTES [--newest-in DIR --glob PATTERN]\n"
    "                        and then what `pack` prints\n"
    "      --lease FILE --owner ID --fence N\n"
    "                        only while this lease is held; also with fresh and remove\n"
    "  br-supervise state --run-dir DIR\n"
    "  br-supervise stop --run-dir DIR [--grace S]\n"
    "  br-supervise du DIR...\n"
    "  br-supervise fresh --in DIR --fresh FOLDER [--make DIR]... [--marker TEXT]\n"
    "      empties FOLDER, a marked one below the claimed DIR, and makes folders in it\n"
    "  br-supervise remove --in DIR --folder FOLDER\n"
    "  br-supervise pack --run-dir DIR [--limit BYTES] [--newest-in DIR --glob PATTERN]\n"
    "      prints a run folder's files as one stream\n"
    "  br-supervise lease take --owner ID --store ID --about TEXT --stale S [--lock FILE]\n"
    "      [--process TEXT] [--dead ID]\n"
    "  br-supervise lease renew|release --lock FILE --owner ID --fence N\n"
    "  br-supervise lease show [--lock FILE]\n"
    "      who may use this host\n"
    "  br-supervise port --free N [--address A]\n"
    "      whether a server could take that TCP port, else who has it\n"
    "  br-supervise port --wait N --run-dir DIR [--timeout S] [--address A]\n"
    "      until the server of a run answers there, or the run is over\n"
    "  br-supervise port --reach N --address A [--timeout S]\n"
    "      until a server on another host answers there\n"
    "  br-supervise serve\n"
    "      answers requests on stdin, for a controller; see README.md\n"
    "  br-supervise --help | --version\n"
    "\n"
    "Examples:\n"
    "  br-supervise start --run-dir run1 --timeout 600 --du /data/db --device-of /data \\\n"
    "      -- db_bench --benchmarks=fillseq --db=/data/db\n"
    "  br-supervise state --run-dir run1\n"
    "  br-supervise stop --run-dir run1 --grace 10\n"
    "  br-supervise du /data/db\n"
    "\n"
    "Exit codes: 0 done, 1 it could not be done, 2 wrong usage, 3 the run folder is taken,\n"
    "4 a folder is not ours: it was not touched, 5 another controller holds the lease.\n"
    "The files of a run folder are described in README.md.\n";

int main(int argc, char** argv) {
  sanitize_descriptors();
  if (argc == 2 && strcmp(argv[1], "serve") == 0) {
    return serve_command();
  }
  if (argc >= 2 && strcmp(argv[1], "lease") == 0) {
    return lease_command(argc - 1, argv + 1);
  }
  if (argc >= 2 && strcmp(argv[1], "port") == 0) {
    return port_command(argc - 1, argv + 1);
  }
  static struct options options;  // what it points to lives as long as the process
  options_parse(argc, argv, &options);
  const int admitted = lease_admit(&options.lease, options.request.run_dir);
  if (admitted != EXIT_OK) {
    return admitted;
  }
  switch (options.verb) {
    case VERB_START:
      return start_command(&options.request);
    case VERB_STATE:
      return state_command(options.request.run_dir);
    case VERB_STOP:
      return stop_command(options.request.run_dir, options.stop_grace_ns);
    case VERB_DU:
      return du_command(options.directories, options.directory_count);
    case VERB_FRESH:
      return ours_fresh(&options.request.fresh);
    case VERB_REMOVE:
      return ours_remove_all(&options.request.fresh);
    case VERB_PACK:
      return pack_command(&options.pack);
    case VERB_HELP:
      fputs(kHelp, stdout);
      return EXIT_OK;
    case VERB_VERSION:
      puts("br-supervise " BR_VERSION);
      return EXIT_OK;
  }
  return EXIT_USAGE;
}
