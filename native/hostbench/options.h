// The command line.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace hostbench {

inline constexpr const char* VERSION = "1.0";

struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Options {
  std::vector<std::string> benchmarks = {"*"};
  std::vector<std::string> pages = {"normal", "huge"};
  std::uint64_t repetitions = 5;
  double seconds = 0.05;
  std::uint64_t min_size = 4096;
  std::uint64_t max_size = UINT64_C(256) << 20;
  std::uint64_t hash_size = 16384;
  std::uint64_t threads = 1;  // set to the number of processors when it is not given
  std::string hash;
  bool wall = false;
  bool json = false;
  bool list = false;
  bool help = false;
  bool version = false;
};

// Throws UsageError with one sentence.
Options parse_options(int argc, char** argv);

std::string help_text();

}  // namespace hostbench
