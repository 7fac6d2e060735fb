#include "hashes.h"

#include <array>
#include <cstdio>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>
#endif

namespace hostbench {

namespace {

// All of these are defined on little-endian words.
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a big-endian host needs byte swaps here");

template <typename Word>
Word load(const std::uint8_t* from) {
  Word word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

// The up to 8 bytes at the end of the input as one word.
std::uint64_t load_rest(const std::uint8_t* from, std::size_t size) {
  std::uint64_t word = 0;
  std::memcpy(&word, from, size);
  return word;
}

constexpr std::uint32_t rotate(std::uint32_t word, int by) { return word << by | word >> (32 - by); }
constexpr std::uint64_t rotate(std::uint64_t word, int by) { return word << by | word >> (64 - by); }

std::uint64_t mixed(std::uint64_t word) {
  word ^= word >> 33;
  word *= UINT64_C(0xff51afd7ed558ccd);
  word ^= word >> 33;
  word *= UINT64_C(0xc4ceb9fe1a85ec53);
  return word ^ word >> 33;
}

std::uint32_t scrambled32(std::uint32_t word) {
  return rotate(word * 0xcc9e2d51U, 15) * 0x1b873593U;
}

constexpr std::uint64_t C1 = UINT64_C(0x87c37b91114253d5), C2 = UINT64_C(0x4cf5ad432745937f);

std::uint64_t scrambled_low(std::uint64_t word) { return rotate(word * C1, 31) * C2; }
std::uint64_t scrambled_high(std::uint64_t word) { return rotate(word * C2, 33) * C1; }

using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables crc_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; byte++) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; bit++) {
      crc = crc >> 1 ^ ((crc & 1U) != 0 ? 0x82f63b78U : 0U);
    }
    tables[0][byte] = crc;
  }
  for (std::uint32_t byte = 0; byte < 256; byte++) {
    for (std::size_t slice = 1; slice < 8; slice++) {
      const std::uint32_t before = tables[slice - 1][byte];
      tables[slice][byte] = before >> 8 ^ tables[0][before & 255U];
    }
  }
  return tables;
}

constexpr Tables CRC = crc_tables();

}  // namespace

std::uint32_t murmur3_32(const std::uint8_t* data, std::size_t size, std::uint32_t seed) {
  std::uint32_t hash = seed;
  std::size_t at = 0;
  for (; at + 4 <= size; at += 4) {
    hash ^= scrambled32(load<std::uint32_t>(data + at));
    hash = rotate(hash, 13) * 5 + 0xe6546b64U;
  }
  hash ^= scrambled32(static_cast<std::uint32_t>(load_rest(data + at, size - at)));
  hash ^= static_cast<std::uint32_t>(size);
  hash ^= hash >> 16;
  hash *= 0x85ebca6bU;
  hash ^= hash >> 13;
  hash *= 0xc2b2ae35U;
  return hash ^ hash >> 16;
}

Wide murmur3_128(const std::uint8_t* data, std::size_t size, std::uint32_t seed) {
  std::uint64_t low = seed, high = seed;
  std::size_t at = 0;
  for (; at + 16 <= size; at += 16) {
    low ^= scrambled_low(load<std::uint64_t>(data + at));
    low = (rotate(low, 27) + high) * 5 + 0x52dce729U;
    high ^= scrambled_high(load<std::uint64_t>(data + at + 8));
    high = (rotate(high, 31) + low) * 5 + 0x38495ab5U;
  }
  const std::size_t rest = size - at;
  if (rest > 8) {
    high ^= scrambled_high(load_rest(data + at + 8, rest - 8));
  }
  low ^= scrambled_low(load_rest(data + at, rest > 8 ? 8 : rest));
  low ^= size;
  high ^= size;
  low += high;
  high += low;
  low = mixed(low);
  high = mixed(high);
  low += high;
  return {low, low + high};
}

std::uint32_t jhash(const std::uint8_t* data, std::size_t size, std::uint32_t seed) {
  std::uint32_t a = 0xdeadbeefU + static_cast<std::uint32_t>(size) + seed;
  std::uint32_t b = a, c = a;
  std::size_t left = size;
  for (; left > 12; left -= 12, data += 12) {
    a += load<std::uint32_t>(data);
    b += load<std::uint32_t>(data + 4);
    c += load<std::uint32_t>(data + 8);
    a -= c, a ^= rotate(c, 4), c += b;
    b -= a, b ^= rotate(a, 6), a += c;
    c -= b, c ^= rotate(b, 8), b += a;
    a -= c, a ^= rotate(c, 16), c += b;
    b -= a, b ^= rotate(a, 19), a += c;
    c -= b, c ^= rotate(b, 4), b += a;
  }
  if (left == 0) {
    return c;
  }
  std::uint8_t last[12] = {};
  std::memcpy(last, data, left);
  a += load<std::uint32_t>(last);
  b += load<std::uint32_t>(last + 4);
  c += load<std::uint32_t>(last + 8);
  c ^= b, c -= rotate(b, 14);
  a ^= c, a -= rotate(c, 11);
  b ^= a, b -= rotate(a, 25);
  c ^= b, c -= rotate(b, 16);
  a ^= c, a -= rotate(c, 4);
  b ^= a, b -= rotate(a, 14);
  c ^= b, c -= rotate(b, 24);
  return c;
}

std::uint64_t fnv1a_64(const std::uint8_t* data, std::size_t size) {
  std::uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (std::size_t i = 0; i < size; i++) {
    hash = (hash ^ data[i]) * UINT64_C(0x100000001b3);
  }
  return hash;
}

std::uint32_t crc32c_table(const std::uint8_t* data, std::size_t size) {
  std::uint32_t crc = ~0U;
  for (; size >= 8; size -= 8, data += 8) {
    const std::uint64_t word = load<std::uint64_t>(data) ^ crc;
    crc = 0;
    for (std::size_t slice = 0; slice < 8; slice++) {
      crc ^= CRC[7 - slice][word >> 8 * slice & 255U];
    }
  }
  for (; size > 0; size--, data++) {
    crc = crc >> 8 ^ CRC[0][(crc ^ *data) & 255U];
  }
  return ~crc;
}

#if defined(__x86_64__)

bool crc32c_hardware_works() { return __builtin_cpu_supports("sse4.2") != 0; }

__attribute__((target("sse4.2"))) std::uint32_t crc32c_hardware(const std::uint8_t* data,
                                                                std::size_t size) {
  std::uint64_t crc = ~0U;
  for (; size >= 8; size -= 8, data += 8) {
    crc = _mm_crc32_u64(crc, load<std::uint64_t>(data));
  }
  auto narrow = static_cast<std::uint32_t>(crc);
  for (; size > 0; size--, data++) {
    narrow = _mm_crc32_u8(narrow, *data);
  }
  return ~narrow;
}

#elif defined(__aarch64__)

bool crc32c_hardware_works() { return (getauxval(AT_HWCAP) & (1UL << 7)) != 0; }

__attribute__((target("+crc"))) std::uint32_t crc32c_hardware(const std::uint8_t* data,
                                                              std::size_t size) {
  std::uint32_t crc = ~0U;
  for (; size >= 8; size -= 8, data += 8) {
    crc = __crc32cd(crc, load<std::uint64_t>(data));
  }
  for (; size > 0; size--, data++) {
    crc = __crc32cb(crc, *data);
  }
  return ~crc;
}

#else

bool crc32c_hardware_works() { return false; }

std::uint32_t crc32c_hardware(const std::uint8_t* data, std::size_t size) {
  return crc32c_table(data, size);
}

#endif

namespace {

bool always() { return true; }

std::string hex(std::uint64_t word, int digits) {
  char text[17];
  std::snprintf(text, sizeof text, "%0*llx", digits, static_cast<unsigned long long>(word));
  return text;
}

template <std::uint32_t (*function)(const std::uint8_t*, std::size_t)>
std::uint64_t fold(const std::uint8_t* data, std::size_t size) {
  return function(data, size);
}

template <std::uint32_t (*function)(const std::uint8_t*, std::size_t)>
std::string text(const std::uint8_t* data, std::size_t size) {
  return hex(function(data, size), 8);
}

std::uint32_t murmur_short(const std::uint8_t* data, std::size_t size) {
  return murmur3_32(data, size, 0);
}

std::uint32_t jhash_plain(const std::uint8_t* data, std::size_t size) { return jhash(data, size, 0); }

std::uint64_t murmur_fold(const std::uint8_t* data, std::size_t size) {
  const Wide hash = murmur3_128(data, size, 0);
  return hash.low ^ hash.high;
}

std::string murmur_text(const std::uint8_t* data, std::size_t size) {
  const Wide hash = murmur3_128(data, size, 0);
  return hex(hash.low, 16) + hex(hash.high, 16);
}

std::string fnv_text(const std::uint8_t* data, std::size_t size) {
  return hex(fnv1a_64(data, size), 16);
}

}  // namespace

const std::vector<Hash>& hashes() {
  static const std::vector<Hash> all = {
      {"murmur3-32", "MurmurHash3_x86_32", always, fold<murmur_short>, text<murmur_short>},
      {"murmur3-128", "MurmurHash3_x64_128", always, murmur_fold, murmur_text},
      {"jhash", "lookup3, Linux's jhash", always, fold<jhash_plain>, text<jhash_plain>},
      {"fnv1a-64", "FNV-1a, a byte at a time", always, fnv1a_64, fnv_text},
      {"crc32c-table", "CRC-32C from tables, eight bytes at a time", always, fold<crc32c_table>,
       text<crc32c_table>},
      {"crc32c", "CRC-32C by the processor's instruction", crc32c_hardware_works,
       fold<crc32c_hardware>, text<crc32c_hardware>},
  };
  return all;
}

}  // namespace hostbench
