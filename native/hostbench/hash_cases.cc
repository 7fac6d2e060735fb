#include <vector>

#include "cases.h"
#include "hashes.h"

namespace hostbench {

namespace {

// Bytes that follow no pattern a hash could like.
std::vector<std::uint8_t> input(std::uint64_t size) {
  std::vector<std::uint8_t> bytes(size);
  std::uint64_t word = 1;
  for (std::uint8_t& byte : bytes) {
    word = word * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    byte = static_cast<std::uint8_t>(word >> 56);
  }
  return bytes;
}

void hashing(benchmark::State& state, const Hash& hash, std::uint64_t size) {
  if (!hash.works()) {
    state.SkipWithError("this processor has no instruction for it");
    return;
  }
  const std::vector<std::uint8_t> bytes = input(size);
  for (auto _ : state) {
    benchmark::DoNotOptimize(hash.fold(bytes.data(), bytes.size()));
    benchmark::ClobberMemory();
  }
  state.counters[BYTES] = static_cast<double>(size);
}

}  // namespace

std::vector<Case> hash_cases(const Options& options) {
  std::vector<Case> cases;
  const std::uint64_t size = options.hash_size;
  for (const Hash& hash : hashes()) {
    cases.push_back({std::string("hash/") + hash.name, Quantity::HASHING, hash.meaning, size, 1, false,
                     [&hash, size](benchmark::State& state) { hashing(state, hash, size); }});
  }
  return cases;
}

}  // namespace hostbench
