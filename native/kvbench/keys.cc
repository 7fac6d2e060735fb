#include "keys.h"

#include <algorithm>
#include <cstring>

namespace kvbench {

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  }
  return hash;
}

std::uint64_t stream_seed(std::uint64_t seed, std::string_view phase, std::uint64_t run,
                          std::uint64_t thread) {
  return mix(mix(mix(mix(seed + 1) ^ hash_of(phase)) + run) + thread);
}

Permutation::Permutation(std::uint64_t size, std::uint64_t seed) : size_(size), seed_(seed) {
  while (half_bits_ < 32 && (std::uint64_t{1} << (2 * half_bits_)) < size) {
    half_bits_++;
  }
}

std::uint64_t Permutation::once(std::uint64_t x) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = x >> half_bits_;
  std::uint64_t right = x & mask;
  for (std::uint64_t round = 0; round < 4; round++) {
    const std::uint64_t next = left ^ (mix(seed_ + round * 0x9E3779B97F4A7C15U + right) & mask);
    left = right;
    right = next;
  }
  return (left << half_bits_) | right;
}

std::uint64_t Permutation::at(std::uint64_t index) const {
  do {
    index = once(index);
  } while (index >= size_);
  return index;
}

std::uint64_t decode_key(std::string_view key, bool decimal) {
  std::uint64_t number = 0;
  if (decimal) {
    for (const char c : key) {
      number = number * 10 + static_cast<unsigned char>(c - '0');
    }
    return number;
  }
  for (const char c : key.substr(0, 8)) {
    number = (number << 8) | static_cast<unsigned char>(c);
  }
  return number;
}

namespace {

// As db_bench: pieces of 100 bytes, each the same random bytes over and over.
std::string compressible(std::size_t size, double ratio) {
  constexpr std::size_t PIECE = 100;
  const std::size_t raw = std::max<std::size_t>(1, static_cast<std::size_t>(PIECE * ratio));
  std::string text;
  text.reserve(size + PIECE);
  for (Random random(301); text.size() < size;) {
    std::string piece;
    for (std::size_t i = 0; i < raw; i++) {
      piece += static_cast<char>(' ' + static_cast<char>(random.below(95)));
    }
    for (std::size_t i = 0; i < PIECE; i++) {
      text += piece[i % raw];
    }
  }
  text.resize(size);
  return text;
}

}  // namespace

Values::Values(std::size_t size, double ratio)
    : size_(size), pool_(compressible(POOL_SIZE + size, ratio)) {}

void Values::make(std::uint64_t key, std::uint64_t generation, std::string& value) const {
  const std::uint64_t check = mix(mix(key + 1) ^ generation);
  char head[VERIFIABLE_SIZE];
  std::memcpy(head, &generation, 8);
  std::memcpy(head + 8, &check, 8);
  const std::size_t head_size = std::min(size_, VERIFIABLE_SIZE);
  value.resize(size_);
  std::memcpy(value.data(), head, head_size);
  std::memcpy(value.data() + head_size, pool_.data() + offset_of(check), size_ - head_size);
}

bool Values::is_value_of(std::uint64_t key, std::string_view value) const {
  if (value.size() != size_ || size_ < VERIFIABLE_SIZE) {
    return false;
  }
  std::uint64_t generation = 0;
  std::uint64_t check = 0;
  std::memcpy(&generation, value.data(), 8);
  std::memcpy(&check, value.data() + 8, 8);
  return check == mix(mix(key + 1) ^ generation) &&
         std::memcmp(value.data() + VERIFIABLE_SIZE, pool_.data() + offset_of(check),
                     size_ - VERIFIABLE_SIZE) == 0;
}

}  // namespace kvbench
