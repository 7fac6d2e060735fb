#include "numbers.h"

#include <cctype>
#include <charconv>

#include "engine.h"

namespace kvbench {

namespace {

unsigned shift_of(const std::string& unit) {
  if (unit.size() != 1) {
    return 0;
  }
  switch (std::tolower(static_cast<unsigned char>(unit[0]))) {
    case 'k':
      return 10;
    case 'm':
      return 20;
    case 'g':
      return 30;
    default:
      return 0;
  }
}

}  // namespace

std::uint64_t parse_unsigned(const std::string& name, const std::string& text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  const unsigned shift = shift_of(std::string(rest, end));
  const bool fits = (value << shift) >> shift == value && value << shift <= INT64_MAX;
  if (error != std::errc() || (rest != end && shift == 0) || !fits) {
    throw UsageError(name + " takes a whole number (with k, m or g if you like), not '" + text +
                     "'");
  }
  return value << shift;
}

double parse_fraction(const std::string& name, const std::string& text) {
  double value = 0.0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || !(value >= 0.0 && value <= 1.0)) {
    throw UsageError(name + " takes a number from 0 to 1, not '" + text + "'");
  }
  return value;
}

bool parse_flag(const std::string& name, const std::string& text) {
  if (text == "1" || text == "true") {
    return true;
  }
  if (text == "0" || text == "false") {
    return false;
  }
  throw UsageError(name + " takes true, false, 1 or 0, not '" + text + "'");
}

}  // namespace kvbench
