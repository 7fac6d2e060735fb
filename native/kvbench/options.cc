#include "options.h"

#include <map>
#include <sstream>
#include <variant>

#include "numbers.h"
#include "workload.h"

namespace kvbench {

namespace {

using Target = std::variant<std::uint64_t Options::*, bool Options::*, double Options::*,
                            std::string Options::*>;

struct Flag {
  const char* name;
  Target target;
  const char* meaning;
};

// --benchmarks and --engine_opt are lists and apart.
const std::vector<Flag>& flags() {
  static const std::vector<Flag> all = {
      {"engine", &Options::engine, "what to measure"},
      {"db", &Options::db, "directory of the database; the null engine needs none"},
      {"num", &Options::num, "keys are the numbers below this; operations of a thread"},
      {"reads", &Options::reads, "reads of a thread; 0: num"},
      {"writes", &Options::writes, "writes of a thread; 0: num"},
      {"threads", &Options::threads, "threads, not counting the writer of readwhilewriting"},
      {"key_size", &Options::key_size, "bytes"},
      {"decimal_keys", &Options::decimal_keys,
       "keys of decimal digits, as LevelDB's db_bench has; else big-endian numbers"},
      {"value_size", &Options::value_size, "bytes"},
      {"batch_size", &Options::batch_size, "pairs that are written, keys that are read, as one"},
      {"seek_nexts", &Options::seek_nexts, "entries to walk after each seek"},
      {"duration", &Options::duration_s, "seconds instead of a number of operations"},
      {"seed", &Options::seed, "of every stream of keys; any number, always the same keys"},
      {"benchmark_write_rate_limit", &Options::write_rate_limit,
       "bytes/s of all writers together; 0: none"},
      {"stats_interval_seconds", &Options::stats_interval_s,
       "a line of each thread on stderr every so many seconds; 0: none"},
      {"dump_keys", &Options::dump_keys, "print the first N keys of each thread and end"},
      {"compression_ratio", &Options::compression_ratio, "what compression leaves of a value"},
      {"histogram", &Options::histogram, "time every operation, print percentiles"},
      {"use_existing_db", &Options::use_existing_db, "go on with the database that is there"},
      {"sync", &Options::sync, "a write returns when it survives a power failure"},
      {"verify", &Options::verify, "check every value that is read"},
      {"json", &Options::json, "after each phase a line of JSON with full precision"},
      {"driver_cost", &Options::driver_cost, "measure the driver itself first (milliseconds)"},
      {"help", &Options::help, "this text"},
      {"version", &Options::version, "engines of this build and their versions"},
  };
  return all;
}

void assign(Options& options, const Flag& flag, const std::string& text) {
  const std::string name = std::string("--") + flag.name;
  if (const auto* number = std::get_if<std::uint64_t Options::*>(&flag.target)) {
    options.*(*number) = parse_unsigned(name, text);
  } else if (const auto* fraction = std::get_if<double Options::*>(&flag.target)) {
    options.*(*fraction) = parse_fraction(name, text);
  } else if (const auto* word = std::get_if<std::string Options::*>(&flag.target)) {
    options.*(*word) = text;
  } else {
    options.*std::get<bool Options::*>(flag.target) = parse_flag(name, text);
  }
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    if (!part.empty()) {
      parts.push_back(part);
    }
  }
  return parts;
}

void set(Options& options, const std::string& name, const std::string& text) {
  if (name == "benchmarks") {
    options.benchmarks = split(text);
    return;
  }
  if (name == "engine_opt") {
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos) {
      throw UsageError("--engine_opt takes name=value, not '" + text + "'");
    }
    options.engine_options.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    return;
  }
  for (const Flag& flag : flags()) {
    if (name == flag.name) {
      assign(options, flag, text);
      return;
    }
  }
  throw UsageError("unknown option --" + name + "; try --help");
}

bool is_boolean(const std::string& name) {
  for (const Flag& flag : flags()) {
    if (name == flag.name) {
      return std::holds_alternative<bool Options::*>(flag.target);
    }
  }
  return false;
}

void require(bool fine, const std::string& message) {
  if (!fine) {
    throw UsageError(message);
  }
}

bool largest_fits(const Options& o) {
  const std::uint64_t largest = o.num - 1;
  if (!o.decimal_keys) {
    return o.key_size >= 8 || largest >> (8 * o.key_size) == 0;
  }
  return std::to_string(largest).size() <= o.key_size;
}

void check(const Options& o) {
  require(!o.benchmarks.empty(), "--benchmarks is missing; try --benchmarks=fillrandom,readrandom");
  for (const std::string& name : o.benchmarks) {
    workload_named(name);
  }
  require(o.num >= 1, "--num must be at least 1");
  require(o.threads >= 1 && o.threads <= 4096, "--threads must be from 1 to 4096");
  require(o.key_size >= 1 && o.key_size <= 1024, "--key_size must be from 1 to 1024");
  require(largest_fits(o),
          "--key_size=" + std::to_string(o.key_size) + " is too small for --num=" +
              std::to_string(o.num) + " different keys");
  require(o.value_size <= 1U << 30, "--value_size must be at most 1g");
  require(o.num <= (UINT64_C(1) << 58) / (o.key_size + o.value_size), "--num is too large");
  require(o.batch_size >= 1 && o.batch_size <= 1U << 24, "--batch_size must be from 1 to 16m");
  require(o.duration_s <= 1U << 30, "--duration must be at most 1g seconds");
  require(!o.verify || o.value_size >= Values::VERIFIABLE_SIZE,
          "--verify needs values of 16 bytes or more, not --value_size=" +
              std::to_string(o.value_size));
  require(!o.db.empty() || o.engine == "null" || o.dump_keys > 0,
          "--db is missing: the directory of the database");
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i++) {
    const std::string argument = argv[i];
    if (argument.rfind("--", 0) != 0) {
      throw UsageError("unexpected argument '" + argument + "'; options begin with --");
    }
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(2, equals == std::string::npos ? equals : equals - 2);
    if (equals != std::string::npos) {
      set(options, name, argument.substr(equals + 1));
    } else if (is_boolean(name)) {
      set(options, name, "1");
    } else if (i + 1 < argc) {
      set(options, name, argv[++i]);
    } else {
      set(options, name, "");  // says that it is unknown, or what it takes
    }
  }
  if (!options.help && !options.version) {
    check(options);
  }
  return options;
}

std::string help_text() {
  std::string text = "kvbench --benchmarks=NAME[,NAME]... --engine=NAME --db=DIR [option]...\n\n";
  const auto line = [&text](const std::string& name, const std::string& meaning) {
    const std::size_t gap = name.size() < 30 ? 30 - name.size() : 1;
    text += "  " + name + std::string(gap, ' ') + meaning + "\n";
  };
  for (const Flag& flag : flags()) {
    line(std::string("--") + flag.name, flag.meaning);
  }
  line("--engine_opt NAME=VALUE", "setting of the engine; may be repeated");
  text += "\nBenchmarks:\n";
  for (const Workload& workload : workloads()) {
    line(workload.name, workload.meaning);
  }
  for (const EngineInfo* engine : engines()) {
    text += std::string("\nEngine ") + engine->name + " " + engine->version + ":\n";
    for (const EngineOption& option : engine->options) {
      line(std::string(option.name) + "=" + option.standard, option.meaning);
    }
  }
  return text;
}

Settings settings_of(const Options& options, const EngineInfo& engine) {
  Settings settings;
  settings.path = options.db;
  settings.create = !options.use_existing_db;
  settings.sync = options.sync;
  settings.entries = options.num;
  settings.key_size = options.key_size;
  settings.decimal_keys = options.decimal_keys;
  settings.value_size = options.value_size;
  settings.sessions = static_cast<unsigned>(options.threads) + 1;
  for (const EngineOption& option : engine.options) {
    settings.options[option.name] = option.standard;
  }
  for (const auto& [name, value] : options.engine_options) {
    const auto known = settings.options.find(name);
    if (known == settings.options.end()) {
      throw UsageError(std::string("engine ") + engine.name + " has no option '" + name +
                       "'; --help lists those it has");
    }
    known->second = value;
  }
  return settings;
}

}  // namespace kvbench
