// Texts from the command line as numbers; what is none is a UsageError that names it.
#pragma once

#include <cstdint>
#include <string>

namespace kvbench {

std::uint64_t parse_unsigned(const std::string& name, const std::string& text);  // 4096, 4k, 1m, 2g
double parse_fraction(const std::string& name, const std::string& text);         // 0 to 1
bool parse_flag(const std::string& name, const std::string& text);

}  // namespace kvbench
