// Which key comes next, and which value belongs to it: the same for every engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kvbench {

__extension__ using Wide = unsigned __int128;

std::uint64_t mix(std::uint64_t x);             // a bijection that spreads every bit (splitmix64)
std::uint64_t hash_of(std::string_view text);  // FNV-1a

// A stream of numbers that depends on its seed only.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() { return mix(state_ += 0x9E3779B97F4A7C15U); }

  // In [0, bound). The bias of multiplying instead of dividing is below bound / 2^64.
  std::uint64_t below(std::uint64_t bound) {
    return static_cast<std::uint64_t>((static_cast<Wide>(next()) * bound) >> 64);
  }

 private:
  std::uint64_t state_;
};

// The seed of one thread of one phase: depends on nothing but what is named here, so a phase asks
// for the same keys whether it shares a process with others or not.
std::uint64_t stream_seed(std::uint64_t seed, std::string_view phase, std::uint64_t run,
                          std::uint64_t thread);

// Every number of [0, size) once, in an order that looks random, without a table of them: a
// shuffled one would take as much memory as some databases. A Feistel network, cycle walking.
class Permutation {
 public:
  Permutation(std::uint64_t size, std::uint64_t seed);
  std::uint64_t at(std::uint64_t index) const;

 private:
  std::uint64_t once(std::uint64_t x) const;

  std::uint64_t size_;
  std::uint64_t seed_;
  unsigned half_bits_ = 1;
};

// What keys look like. RocksDB's db_bench: the number in big-endian, eight bytes or as many as fit,
// then '0' to the size. Decimal, LevelDB's db_bench: its digits, with '0' before them.
struct KeyForm {
  std::size_t size;
  bool decimal = false;
};

class KeyBuffer {
 public:
  explicit KeyBuffer(KeyForm form) : decimal_(form.decimal), bytes_(form.size, '0') {}

  std::string_view encode(std::uint64_t number) {
    if (decimal_) {
      encode_decimal(number);
      return bytes_;
    }
    const std::size_t digits = bytes_.size() < 8 ? bytes_.size() : 8;
    for (std::size_t i = 0; i < digits; i++) {
      bytes_[i] = static_cast<char>(static_cast<unsigned char>(number >> (8 * (digits - i - 1))));
    }
    return bytes_;
  }

 private:
  void encode_decimal(std::uint64_t number) {
    for (std::size_t i = bytes_.size(); i > 0; number /= 10) {
      bytes_[--i] = static_cast<char>('0' + number % 10);
    }
  }

  bool decimal_;
  std::string bytes_;
};

std::uint64_t decode_key(std::string_view key, bool decimal = false);

// Values that say themselves whether they are right: a generation (8 bytes), what key and
// generation mix to (8 bytes), then a stretch of a pool chosen by that. Shorter values are cut.
class Values {
 public:
  static constexpr std::size_t VERIFIABLE_SIZE = 16;

  // The pool repeats itself such that about `ratio` of it is left after compression.
  Values(std::size_t size, double ratio);

  std::size_t size() const { return size_; }
  void make(std::uint64_t key, std::uint64_t generation, std::string& value) const;
  bool is_value_of(std::uint64_t key, std::string_view value) const;

 private:
  // Small enough for a second-level cache: a look at the clock waits for what memory still owes.
  static constexpr std::size_t POOL_SIZE = 1U << 17;

  std::size_t offset_of(std::uint64_t check) const { return check % POOL_SIZE; }

  std::size_t size_;
  std::string pool_;
};

}  // namespace kvbench
