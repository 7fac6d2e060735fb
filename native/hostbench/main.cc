// hostbench: what this host does in how much time, where no well-kept tool says it.
#include <fnmatch.h>

#include <algorithm>
#include <cstdio>
#include <cstdint>
#include <exception>
#include <map>
#include <new>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "cases.h"
#include "hashes.h"
#include "memory.h"
#include "options.h"
#include "report.h"

namespace {

using namespace hostbench;

enum Exit { EXIT_FINE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

std::vector<Case> all_cases(const Options& options) {
  std::vector<Case> all;
  for (auto make : {memory_cases, lock_cases, switch_cases, hash_cases}) {
    for (Case& one : make(options)) {
      all.push_back(std::move(one));
    }
  }
  return all;
}

bool matches(const std::string& pattern, const Case& one) {
  return fnmatch(pattern.c_str(), one.name.c_str(), 0) == 0;
}

std::vector<Case> selected(const Options& options) {
  std::vector<Case> all = all_cases(options);
  for (const std::string& pattern : options.benchmarks) {
    if (std::none_of(all.begin(), all.end(),
                     [&pattern](const Case& one) { return matches(pattern, one); })) {
      throw UsageError("no benchmark is called '" + pattern + "'; --list prints them");
    }
  }
  std::vector<Case> chosen;
  for (Case& one : all) {
    for (const std::string& pattern : options.benchmarks) {
      if (matches(pattern, one)) {
        chosen.push_back(std::move(one));
        break;
      }
    }
  }
  return chosen;
}

// An exception must not leave a thread of Google Benchmark: the benchmark is skipped and says why.
void guarded_case(const Case& one, benchmark::State& state) {
  try {
    one.run(state);
  } catch (const NoMemory& error) {
    state.SkipWithError(error.what());
  } catch (const std::bad_alloc&) {
    state.SkipWithError("there is not enough memory");
  }
}

int run(const Options& options) {
  const std::vector<Case> cases = selected(options);
  if (options.list) {
    for (const Case& one : cases) {
      std::printf("%-32s %s\n", one.name.c_str(), one.meaning.c_str());
    }
    return EXIT_FINE;
  }
  std::map<std::string, const Case*> by_name;
  for (const Case& one : cases) {
    by_name[one.name] = &one;
    auto* registered = benchmark::RegisterBenchmark(
        one.name.c_str(), [&one](benchmark::State& state) { guarded_case(one, state); });
    registered->MinTime(options.seconds)
        ->Repetitions(static_cast<int>(options.repetitions))
        ->Threads(one.threads);
    if (one.waits || options.wall) {
      registered->UseRealTime();
    }
  }
  Report report(options, by_name);
  report.begin();
  benchmark::RunSpecifiedBenchmarks(&report, nullptr, ".");
  report.end();
  if (!report.written()) {
    std::fprintf(stderr, "hostbench: cannot write to standard output\n");
    return EXIT_FAILED;
  }
  return EXIT_FINE;
}

int print_hash(const std::string& name) {
  for (const Hash& hash : hashes()) {
    if (name == hash.name && hash.works()) {
      std::vector<std::uint8_t> bytes;
      std::uint8_t part[65536];
      for (std::size_t got; (got = std::fread(part, 1, sizeof part, stdin)) > 0;) {
        bytes.insert(bytes.end(), part, part + got);
      }
      bytes.reserve(1);  // so that there is an address even of nothing
      std::puts(hash.text(bytes.data(), bytes.size()).c_str());
      return EXIT_FINE;
    }
  }
  std::string known;
  for (const Hash& hash : hashes()) {
    known += (known.empty() ? "" : ", ") + std::string(hash.name);
  }
  throw UsageError("there is no hash '" + name + "' here; there are " + known);
}

int guarded(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  if (options.help) {
    std::fputs(help_text().c_str(), stdout);
    return EXIT_FINE;
  }
  if (options.version) {
    std::printf("hostbench %s\n", VERSION);
    return EXIT_FINE;
  }
  return options.hash.empty() ? run(options) : print_hash(options.hash);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return guarded(argc, argv);
  } catch (const UsageError& error) {
    std::fprintf(stderr, "hostbench: %s\n", error.what());
    return EXIT_USAGE;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hostbench: unexpected error: %s\n", error.what());
  }
  return EXIT_FAILED;
}
