#include "options.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <variant>

namespace hostbench {

namespace {

using List = std::vector<std::string>;
using Target = std::variant<std::uint64_t Options::*, double Options::*, bool Options::*,
                            std::string Options::*, List Options::*>;

struct Flag {
  const char* name;
  Target target;
  const char* meaning;
};

const std::vector<Flag>& flags() {
  static const std::vector<Flag> all = {
      {"benchmarks", &Options::benchmarks, "names or patterns such as latency/*; default: all"},
      {"repetitions", &Options::repetitions, "of each benchmark; their median is the result"},
      {"seconds", &Options::seconds, "that a repetition goes on for, at least"},
      {"pages", &Options::pages, "normal, huge or both: what memory consists of"},
      {"min_size", &Options::min_size, "smallest block of memory; 4k and the like"},
      {"max_size", &Options::max_size, "largest block of memory"},
      {"hash_size", &Options::hash_size, "bytes that are hashed in one call"},
      {"threads", &Options::threads, "of what several do at once; default: the processors"},
      {"hash", &Options::hash, "print this hash of standard input and end"},
      {"wall", &Options::wall, "time by the clock what is else timed in CPU time"},
      {"json", &Options::json, "one JSON document with full precision"},
      {"list", &Options::list, "print the names that these options select and end"},
      {"help", &Options::help, "this text"},
      {"version", &Options::version, "print the version and end"},
  };
  return all;
}

List split(const std::string& text) {
  List parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    if (!part.empty()) {
      parts.push_back(part);
    }
  }
  return parts;
}

void require(bool fine, const std::string& message) {
  if (!fine) {
    throw UsageError(message);
  }
}

std::uint64_t parse_size(const std::string& name, const std::string& text) {
  const std::string message = name + " takes a whole number, or one with k, m or g, not '" + text + "'";
  require(!text.empty() && text[0] >= '0' && text[0] <= '9', message);
  errno = 0;
  char* end = nullptr;
  const std::uint64_t number = std::strtoull(text.c_str(), &end, 10);
  const std::string suffix = end;
  const std::size_t power = suffix.size() == 1 ? std::string("kmg").find(suffix[0]) : std::string::npos;
  require(errno == 0 && (suffix.empty() || power != std::string::npos), message);
  const unsigned shift = suffix.empty() ? 0 : static_cast<unsigned>(10 * (power + 1));
  require(number <= UINT64_MAX >> shift, message);
  return number << shift;
}

double parse_seconds(const std::string& name, const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  require(!text.empty() && *end == '\0' && std::isfinite(number) && number > 0 && number <= 3600,
          name + " takes seconds, above 0 and at most 3600, not '" + text + "'");
  return number;
}

bool parse_flag(const std::string& name, const std::string& text) {
  require(text == "true" || text == "1" || text == "false" || text == "0",
          name + " takes true or false, not '" + text + "'");
  return text == "true" || text == "1";
}

struct Assignment {
  Options& options;
  const std::string name;
  const std::string& text;

  void operator()(std::uint64_t Options::*target) const { options.*target = parse_size(name, text); }
  void operator()(double Options::*target) const { options.*target = parse_seconds(name, text); }
  void operator()(bool Options::*target) const { options.*target = parse_flag(name, text); }
  void operator()(std::string Options::*target) const { options.*target = text; }
  void operator()(List Options::*target) const { options.*target = split(text); }
};

const Flag& flag_named(const std::string& name) {
  for (const Flag& flag : flags()) {
    if (name == flag.name) {
      return flag;
    }
  }
  throw UsageError("unknown option --" + name + "; try --help");
}

void check(const Options& o) {
  require(!o.benchmarks.empty(), "--benchmarks names nothing; try --list");
  require(o.repetitions >= 1 && o.repetitions <= 1000, "--repetitions must be from 1 to 1000");
  require(o.threads >= 1 && o.threads <= 4096, "--threads must be from 1 to 4096");
  require(!o.pages.empty(), "--pages names nothing; it takes normal, huge or both");
  for (const std::string& kind : o.pages) {
    require(kind == "normal" || kind == "huge", "--pages takes normal, huge or both, not '" + kind + "'");
  }
  require(o.min_size >= 1024, "--min_size must be at least 1k");
  require(o.max_size >= o.min_size, "--max_size must not be below --min_size");
  require(o.max_size <= UINT64_C(1) << 38, "--max_size must be at most 256g");
  require(o.hash_size >= 1 && o.hash_size <= UINT64_C(1) << 30, "--hash_size must be from 1 to 1g");
}

std::uint64_t processors() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const int count = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
  return static_cast<std::uint64_t>(std::max(count, 1));
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  options.threads = processors();
  for (int i = 1; i < argc; i++) {
    const std::string argument = argv[i];
    require(argument.rfind("--", 0) == 0,
            "unexpected argument '" + argument + "'; options begin with --");
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(2, equals == std::string::npos ? equals : equals - 2);
    const Flag& flag = flag_named(name);
    const bool alone = std::holds_alternative<bool Options::*>(flag.target);
    std::string text = "true";
    if (equals != std::string::npos) {
      text = argument.substr(equals + 1);
    } else if (!alone) {
      require(i + 1 < argc, "--" + name + " needs a value");
      text = argv[++i];
    }
    std::visit(Assignment{options, "--" + name, text}, flag.target);
  }
  if (!options.help && !options.version) {
    check(options);
  }
  return options;
}

std::string help_text() {
  std::string text =
      "hostbench [option]...\n\n"
      "Measures what no well-kept tool does: memory by size, locks, context switches, some hashes.\n\n";
  for (const Flag& flag : flags()) {
    const std::string name = std::string("--") + flag.name;
    text += "  " + name + std::string(16 - name.size(), ' ') + flag.meaning + "\n";
  }
  return text;
}

}  // namespace hostbench
