// kvbench: one driver for many key-value engines, in the language of RocksDB's db_bench.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <new>
#include <string>
#include <system_error>

#include "database.h"
#include "options.h"
#include "report.h"
#include "runner.h"
#include "workload.h"

namespace {

using namespace kvbench;

enum Exit { EXIT_FINE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_WRONG_VALUE = 3 };

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  if (std::fflush(stdout) != 0) {
    throw Failure("output", "cannot write to standard output");
  }
}

void run_one(const Workload& workload, std::uint64_t run, const Options& options,
             const Values& values, Database& database) {
  if (workload.fresh && options.use_existing_db) {
    print(std::string(workload.name) + " : skipped (--use_existing_db is true)\n");
    return;
  }
  const bool sync = options.sync || workload.sync;
  if (workload.fresh) {
    database.create(sync);
  } else {
    database.reopen(sync);
  }
  if (std::string("stats") == workload.name) {
    print(database.engine().properties());
    return;
  }
  for (const PhaseResult& result :
       run_phase(workload, run, options, values, database.engine())) {
    print(result_text(result, options.histogram));
    if (options.json) {
      print(result_json(result, options.histogram));
    }
  }
}

void run_all(const Options& options, const EngineInfo& engine) {
  const Values values(options.value_size, options.compression_ratio);
  std::map<std::string, std::uint64_t> runs;
  if (options.dump_keys != 0) {
    for (const std::string& name : options.benchmarks) {
      const Workload& workload = workload_named(name);
      if (workload.run != nullptr) {
        print(first_keys(workload, ++runs[name], options, values));
      }
    }
    return;
  }
  Database database(engine, settings_of(options, engine));
  if (options.use_existing_db) {
    database.reopen(options.sync);
  } else {
    database.create(options.sync);
  }
  DriverCost measured;
  const DriverCost* cost = nullptr;
  if (options.driver_cost) {
    measured = measure_driver(options, values);
    cost = &measured;
  }
  print(header_text(options, engine, cost));
  if (options.json) {
    print(header_json(options, engine, cost));
  }
  for (const std::string& name : options.benchmarks) {
    run_one(workload_named(name), ++runs[name], options, values, database);
  }
  database.close();
}

void print_versions() {
  for (const EngineInfo* engine : engines()) {
    print(std::string(engine->name) + " " + engine->version + "\n");
  }
}

// Engines have words of their own for a full disk; LMDB's are "Input/output error".
std::string full_disk(const std::string& path) {
  constexpr std::uintmax_t NEARLY_NONE = 1U << 20;
  std::error_code unknown;
  const std::filesystem::space_info space = std::filesystem::space(path, unknown);
  if (path.empty() || unknown || space.available >= NEARLY_NONE) {
    return "";
  }
  return "; no space is left on the file system of " + path;
}

int guarded(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  if (options.help) {
    print(help_text());
  } else if (options.version) {
    print_versions();
  } else {
    const EngineInfo& engine = engine_named(options.engine);
    settings_of(options, engine);
    try {
      run_all(options, engine);
    } catch (const WrongValue&) {
      throw;
    } catch (const Failure& error) {
      std::fprintf(stderr, "%s%s\n", error.what(), full_disk(options.db).c_str());
      return EXIT_FAILED;
    }
  }
  return EXIT_FINE;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return guarded(argc, argv);
  } catch (const UsageError& error) {
    std::fprintf(stderr, "kvbench: %s\n", error.what());
    return EXIT_USAGE;
  } catch (const WrongValue& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return EXIT_WRONG_VALUE;
  } catch (const Failure& error) {
    std::fprintf(stderr, "%s\n", error.what());
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "memory error: there is not enough of it\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "unexpected error: %s\n", error.what());
  }
  return EXIT_FAILED;
}
