#include "memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace hostbench {

namespace {

constexpr std::uint64_t HUGE_PAGE = UINT64_C(2) << 20;
constexpr std::uint64_t LINE = 64;

// The compiler splits it into what the processor has.
typedef std::uint64_t Vector __attribute__((vector_size(64), may_alias));

std::uint64_t proc_kib(const char* path, const char* word, const char* from_line = nullptr) {
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) {
    return 0;
  }
  char line[512];
  bool wanted = from_line == nullptr;
  unsigned long long kib = 0;
  while (std::fgets(line, sizeof line, file) != nullptr) {
    if (!wanted) {
      wanted = std::strncmp(line, from_line, std::strlen(from_line)) == 0;
    } else if (std::strncmp(line, word, std::strlen(word)) == 0) {
      std::sscanf(line + std::strlen(word), " %llu", &kib);
      break;
    }
  }
  std::fclose(file);
  return kib;
}

}  // namespace

Block::Block(std::uint64_t bytes, bool huge) : size_(bytes) {
  const std::uint64_t rounded = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
  const std::uint64_t free_kib = proc_kib("/proc/meminfo", "MemAvailable:");
  if (free_kib != 0 && rounded / 1024 > free_kib / 10 * 9) {
    throw NoMemory("it needs " + std::to_string(rounded >> 20) + " MiB of memory and " +
                   std::to_string(free_kib >> 10) + " MiB are free");
  }
  mapped_ = rounded + HUGE_PAGE;
  void* mapping = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) {
    throw NoMemory("the kernel gave no " + std::to_string(rounded >> 20) + " MiB of memory");
  }
  mapping_ = static_cast<std::byte*>(mapping);
  const std::uint64_t past = reinterpret_cast<std::uintptr_t>(mapping_) % HUGE_PAGE;
  data_ = mapping_ + (past == 0 ? 0 : HUGE_PAGE - past);
  // Fails where the kernel has no transparent huge pages; huge_percent() then says 0.
  madvise(data_, rounded, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  std::memset(data_, 1, bytes);
}

Block::~Block() { munmap(mapping_, mapped_); }

double Block::huge_percent() const {
  char start[32];
  std::snprintf(start, sizeof start, "%lx-", static_cast<unsigned long>(
                                                 reinterpret_cast<std::uintptr_t>(data_)));
  const std::uint64_t kib = proc_kib("/proc/self/smaps", "AnonHugePages:", start);
  const std::uint64_t rounded = (size_ + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
  return std::min(100.0, 100.0 * static_cast<double>(kib) * 1024.0 / static_cast<double>(rounded));
}

void** make_chain(const Block& block, std::uint64_t bytes) {
  // Sattolo's shuffle: a permutation that is one single cycle.
  std::vector<std::uint32_t> order(bytes / LINE);
  for (std::size_t i = 0; i < order.size(); i++) {
    order[i] = static_cast<std::uint32_t>(i);
  }
  std::mt19937_64 random(20231121);
  for (std::size_t i = order.size() - 1; i > 0; i--) {
    std::swap(order[i], order[random() % i]);
  }
  for (std::size_t i = 0; i < order.size(); i++) {
    void* next = block.data() + LINE * order[i];
    std::memcpy(block.data() + LINE * i, &next, sizeof next);
  }
  return reinterpret_cast<void**>(block.data());
}

void** walk(void** from) {
#pragma GCC unroll 32
  for (std::uint64_t i = 0; i < LOADS_PER_WALK; i++) {
    from = static_cast<void**>(*from);
  }
  return from;
}

void read_all(const std::byte* from, std::uint64_t bytes) {
  const auto* vector = reinterpret_cast<const Vector*>(from);
  const Vector* end = vector + bytes / sizeof(Vector);
  Vector sums[READ_UNIT / sizeof(Vector)] = {};
  for (; vector != end; vector += READ_UNIT / sizeof(Vector)) {
#pragma GCC unroll 8
    for (std::size_t i = 0; i < READ_UNIT / sizeof(Vector); i++) {
      sums[i] ^= vector[i];
    }
  }
  for (std::size_t i = 1; i < READ_UNIT / sizeof(Vector); i++) {
    sums[0] ^= sums[i];
  }
  std::uint64_t folded = 0;
  for (std::size_t i = 0; i < 8; i++) {
    folded ^= sums[0][i];
  }
  asm volatile("" : : "r"(folded) : "memory");
}

void write_all(std::byte* to, std::uint64_t bytes) {
  auto* vector = reinterpret_cast<Vector*>(to);
  Vector* end = vector + bytes / sizeof(Vector);
  Vector value = {1, 2, 3, 4, 5, 6, 7, 8};
  for (; vector != end; vector += READ_UNIT / sizeof(Vector)) {
#pragma GCC unroll 8
    for (std::size_t i = 0; i < READ_UNIT / sizeof(Vector); i++) {
      vector[i] = value;
    }
  }
  asm volatile("" : : : "memory");
}

double gigahertz() {
  constexpr std::uint64_t ROUNDS = 2000;
  constexpr std::uint64_t ADDITIONS = 64;
  double best = 0;
  // The fastest of some: an interrupt only ever makes one slower.
  for (int attempt = 0; attempt < 5; attempt++) {
    const auto began = std::chrono::steady_clock::now();
    std::uint64_t value = ROUNDS;
    for (std::uint64_t round = 0; round < ROUNDS; round++) {
#pragma GCC unroll 64
      for (std::uint64_t i = 0; i < ADDITIONS; i++) {
        // Adds itself: neither the compiler nor the renaming stage can do two of them at once.
        value += value;
        asm volatile("" : "+r"(value));
      }
    }
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - began;
    best = std::max(best, static_cast<double>(ROUNDS * ADDITIONS) / taken.count());
  }
  return best;
}

unsigned vector_bytes() {
#if defined(__AVX512F__)
  return 64;
#elif defined(__AVX__)
  return 32;
#else
  return 16;
#endif
}

}  // namespace hostbench
