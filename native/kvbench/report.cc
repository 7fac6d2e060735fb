#include "report.h"

#include <array>
#include <cinttypes>
#include <cmath>
#include <cstdarg>
#include <cstdio>

namespace kvbench {

namespace {

struct Percentile {
  const char* title;
  const char* metric;
  double percent;
};

constexpr std::array<Percentile, 5> PERCENTILES = {{{"P50", "p50_us", 50.0},
                                                     {"P75", "p75_us", 75.0},
                                                     {"P99", "p99_us", 99.0},
                                                     {"P99.9", "p99_9_us", 99.9},
                                                     {"P99.99", "p99_99_us", 99.99}}};

__attribute__((format(printf, 1, 2))) std::string format(const char* form, ...) {
  std::array<char, 512> text{};
  va_list arguments;
  va_start(arguments, form);
  std::vsnprintf(text.data(), text.size(), form, arguments);
  va_end(arguments);
  return text.data();
}

double elapsed_s(const Stats& stats) {
  return static_cast<double>(stats.finish_ns - stats.start_ns) / 1e9;
}

double quotient(double a, double b) { return b > 0.0 ? a / b : 0.0; }

double usec_per_op(const Stats& s) {
  return quotient(s.thread_seconds * 1e6, static_cast<double>(s.operations));
}

double ops_per_sec(const Stats& s) {
  return quotient(static_cast<double>(s.operations), elapsed_s(s));
}

double mb_per_sec(const Stats& s) {
  return quotient(static_cast<double>(s.bytes) / 1048576.0, elapsed_s(s));
}

// Two rows for each power of two, so that a page holds them.
std::string bucket_table(const Histogram& h) {
  constexpr std::size_t GROUP = std::size_t{1} << (Histogram::SUB_BITS - 1);
  std::string text;
  std::uint64_t seen = 0;
  const double all = static_cast<double>(h.count());
  for (std::size_t i = 0; i < Histogram::BUCKETS; i += GROUP) {
    std::uint64_t here = 0;
    for (std::size_t k = i; k < i + GROUP; k++) {
      here += h.count_at(k);
    }
    if (here == 0) {
      continue;
    }
    seen += here;
    const double part = 100.0 * static_cast<double>(here) / all;
    text += format("[ %11.3f, %11.3f ) %8" PRIu64 " %7.3f%% %7.3f%% ",
                   static_cast<double>(Histogram::low_ns(i)) / 1e3,
                   Histogram::high_ns(i + GROUP - 1) / 1e3, here, part,
                   100.0 * static_cast<double>(seen) / all);
    text += std::string(static_cast<std::size_t>(std::lround(part / 5.0)), '#') + "\n";
  }
  return text;
}

std::string histogram_text(const PhaseResult& result) {
  const Histogram& h = result.stats.histogram;
  std::string text = "Microseconds per " + result.operation + ":\n";
  text += format("Count: %" PRIu64 " Average: %.4f  StdDev: %.2f\n", h.count(), h.mean_us(),
                 h.stddev_us());
  text += format("Min: %.3f  Median: %.4f  Max: %.3f\n", h.min_us(), h.percentile_us(50.0),
                 h.max_us());
  text += "Percentiles:";
  for (const Percentile& p : PERCENTILES) {
    text += format(" %s: %.3f", p.title, h.percentile_us(p.percent));
  }
  return text + "\n" + std::string(54, '-') + "\n" + bucket_table(h) + "\n";
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += format("\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      out += c;
    }
  }
  return out + '"';
}

// Members one after the other; missing is null.
class Object {
 public:
  void raw(const char* name, const std::string& value) {
    text_ += (text_.empty() ? "" : ", ") + quoted(name) + ": " + value;
  }
  void text(const char* name, const std::string& value) { raw(name, quoted(value)); }
  void whole(const char* name, std::uint64_t value) { raw(name, std::to_string(value)); }
  void real(const char* name, double value) { raw(name, format("%.17g", value)); }
  void flag(const char* name, bool value) { raw(name, value ? "true" : "false"); }
  std::string str() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

std::string histogram_json(const Histogram& h) {
  Object object;
  object.whole("latency_count", h.count());
  object.real("mean_us", h.mean_us());
  object.real("stddev_us", h.stddev_us());
  object.real("min_us", h.min_us());
  object.real("max_us", h.max_us());
  for (const Percentile& p : PERCENTILES) {
    object.real(p.metric, h.percentile_us(p.percent));
  }
  std::string buckets;
  for (std::size_t i = 0; i < Histogram::BUCKETS; i++) {
    if (h.count_at(i) != 0) {
      buckets += buckets.empty() ? "" : ", ";
      buckets += format("[%" PRIu64 ", %.0f, %" PRIu64 "]", Histogram::low_ns(i),
                        Histogram::high_ns(i), h.count_at(i));
    }
  }
  object.raw("buckets_ns", "[" + buckets + "]");
  return object.str();
}

}  // namespace

std::string header_text(const Options& o, const EngineInfo& engine, const DriverCost* cost) {
  std::string text = format("Engine:     %s %s\n", engine.name, engine.version.c_str());
  text += format("Keys:       %" PRIu64 " bytes each%s\n", o.key_size,
                 o.decimal_keys ? ", decimal" : "");
  text += format("Values:     %" PRIu64 " bytes each\n", o.value_size);
  text += format("Entries:    %" PRIu64 "\n", o.num);
  text += format("Threads:    %" PRIu64 "\n", o.threads);
  text += format("Sync:       %s\n", o.sync ? "true" : "false");
  text += format("Seed:       %" PRIu64 "\n", o.seed);
  text += format("Write rate: %" PRIu64 " bytes/second\n", o.write_rate_limit);
  if (cost != nullptr) {
    text += format("Driver:     %.1f ns per write, %.1f ns per read (null engine, one thread)\n",
                   cost->write_ns, cost->read_ns);
  }
  return text + std::string(48, '-') + "\n";
}

std::string header_json(const Options& o, const EngineInfo& engine, const DriverCost* cost) {
  Object object;
  object.text("engine", engine.name);
  object.text("engine_version", engine.version);
  Object options;
  for (const auto& [name, value] : settings_of(o, engine).options) {
    options.text(name.c_str(), value);
  }
  object.raw("engine_options", options.str());
  object.whole("num", o.num);
  object.whole("threads", o.threads);
  object.whole("key_size", o.key_size);
  object.flag("decimal_keys", o.decimal_keys);
  object.whole("value_size", o.value_size);
  object.whole("batch_size", o.batch_size);
  object.whole("duration_s", o.duration_s);
  object.whole("seed", o.seed);
  object.whole("benchmark_write_rate_limit", o.write_rate_limit);
  object.flag("sync", o.sync);
  object.flag("verify", o.verify);
  object.raw("driver_ns_per_write", cost == nullptr ? "null" : format("%.17g", cost->write_ns));
  object.raw("driver_ns_per_read", cost == nullptr ? "null" : format("%.17g", cost->read_ns));
  return object.str() + "\n";
}

std::string result_text(const PhaseResult& result, bool histogram) {
  const Stats& s = result.stats;
  std::string text =
      format("%-12s : %11.3f micros/op %.0f ops/sec %.3f seconds %" PRIu64 " operations;",
             result.name.c_str(), usec_per_op(s), std::floor(ops_per_sec(s)), elapsed_s(s),
             s.operations);
  if (s.bytes > 0) {
    text += format(" %6.1f MB/s", mb_per_sec(s));
  }
  if (result.searched) {
    text += format(" (%" PRIu64 " of %" PRIu64 " found)", s.found, s.asked);
  }
  text += "\n";
  if (histogram && s.histogram.count() != 0) {
    text += histogram_text(result);
  }
  return text;
}

std::string result_json(const PhaseResult& result, bool histogram) {
  const Stats& s = result.stats;
  Object object;
  object.text("phase", result.name);
  object.whole("run", result.run);
  object.raw("role", result.role.empty() ? "null" : quoted(result.role));
  object.text("operation", result.operation);
  object.whole("threads", result.threads);
  object.whole("operations", s.operations);
  object.real("elapsed_s", elapsed_s(s));
  object.real("thread_s", s.thread_seconds);
  object.whole("bytes", s.bytes);
  const auto rate = [&object](const char* name, bool known, double value) {
    object.raw(name, known ? format("%.17g", value) : "null");
  };
  rate("ops_per_sec", s.operations > 0, ops_per_sec(s));
  rate("usec_per_op", s.operations > 0, usec_per_op(s));
  rate("mb_per_sec", s.bytes > 0, mb_per_sec(s));
  object.raw("found_count", result.searched ? std::to_string(s.found) : "null");
  object.raw("asked_count", result.searched ? std::to_string(s.asked) : "null");
  object.raw("latency",
             histogram && s.histogram.count() != 0 ? histogram_json(s.histogram) : "null");
  return object.str() + "\n";
}

}  // namespace kvbench
