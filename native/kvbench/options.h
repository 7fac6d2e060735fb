// The command line: db_bench's names and defaults where both have them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine.h"
#include "keys.h"

namespace kvbench {

struct Options {
  std::vector<std::string> benchmarks;
  std::string engine = "null";
  std::string db;
  std::uint64_t num = 1'000'000;
  std::uint64_t reads = 0;   // 0: num
  std::uint64_t writes = 0;  // 0: num
  std::uint64_t threads = 1;
  std::uint64_t key_size = 16;
  bool decimal_keys = false;
  std::uint64_t value_size = 100;
  std::uint64_t batch_size = 1;
  std::uint64_t seek_nexts = 0;
  std::uint64_t duration_s = 0;
  std::uint64_t seed = 301;
  std::uint64_t write_rate_limit = 0;  // bytes/s of all writers together; 0: none
  std::uint64_t stats_interval_s = 0;
  std::uint64_t dump_keys = 0;
  double compression_ratio = 0.5;
  bool histogram = false;
  bool use_existing_db = false;
  bool sync = false;
  bool verify = false;
  bool json = false;
  bool driver_cost = true;
  bool help = false;
  bool version = false;
  std::vector<std::pair<std::string, std::string>> engine_options;

  KeyForm key_form() const { return {key_size, decimal_keys}; }
  std::uint64_t reads_per_thread() const { return reads == 0 ? num : reads; }
  std::uint64_t writes_per_thread() const { return writes == 0 ? num : writes; }
};

// Throws UsageError.
Options parse_options(int argc, char** argv);
std::string help_text();
// Every option of the engine; UsageError for one that it does not know.
Settings settings_of(const Options& options, const EngineInfo& engine);

}  // namespace kvbench
