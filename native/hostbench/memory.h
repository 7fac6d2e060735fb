// Blocks of memory made of pages of one kind, and the loops over them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>

namespace hostbench {

struct NoMemory : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Anonymous memory, touched, so that no page fault is left to be measured.
class Block {
 public:
  // Throws NoMemory with one sentence when the host has not that much free.
  Block(std::uint64_t bytes, bool huge);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  std::byte* data() const { return data_; }
  std::uint64_t size() const { return size_; }
  // What part of it really is in huge pages: the kernel was only asked for them.
  double huge_percent() const;

 private:
  std::byte* mapping_ = nullptr;
  std::size_t mapped_ = 0;
  std::byte* data_ = nullptr;
  std::uint64_t size_;
};

// Makes one cycle through all cache lines of the block, in random order; returns where it begins.
void** make_chain(const Block& block, std::uint64_t bytes);

// Follows the chain. Each load needs the one before it, so nothing overlaps.
inline constexpr std::uint64_t LOADS_PER_WALK = 1024;
void** walk(void** from);

// `bytes` is a multiple of READ_UNIT.
inline constexpr std::uint64_t READ_UNIT = 512;
void read_all(const std::byte* from, std::uint64_t bytes);
void write_all(std::byte* to, std::uint64_t bytes);

// Billions of cycles per second at this moment: additions that wait for each other take one each.
double gigahertz();

// Bytes that the widest vector load of this build moves.
unsigned vector_bytes();

}  // namespace hostbench
