// Hashes that neither openssl nor xxhsum has. Written here from their public descriptions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hostbench {

std::uint32_t murmur3_32(const std::uint8_t* data, std::size_t size, std::uint32_t seed);

struct Wide {
  std::uint64_t low, high;
};
Wide murmur3_128(const std::uint8_t* data, std::size_t size, std::uint32_t seed);

// lookup3, which Linux calls jhash.
std::uint32_t jhash(const std::uint8_t* data, std::size_t size, std::uint32_t seed);

std::uint64_t fnv1a_64(const std::uint8_t* data, std::size_t size);

// With the Castagnoli polynomial: eight bytes at a time from tables, or by the processor.
std::uint32_t crc32c_table(const std::uint8_t* data, std::size_t size);
bool crc32c_hardware_works();
std::uint32_t crc32c_hardware(const std::uint8_t* data, std::size_t size);

struct Hash {
  const char* name;
  const char* meaning;
  bool (*works)();
  std::uint64_t (*fold)(const std::uint8_t* data, std::size_t size);  // for timing
  std::string (*text)(const std::uint8_t* data, std::size_t size);    // as it is usually printed
};

const std::vector<Hash>& hashes();

}  // namespace hostbench
