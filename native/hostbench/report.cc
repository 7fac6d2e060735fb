#include "report.h"

#include <algorithm>
#include <cmath>

#include "memory.h"

namespace hostbench {

namespace {

constexpr double MIB = 1048576.0;

struct Metric {
  const char* id;
  const char* unit;
};

Metric metric_of(Quantity quantity) {
  switch (quantity) {
    case Quantity::LATENCY: return {"latency_ns", "ns"};
    case Quantity::BANDWIDTH: return {"bandwidth_mb_per_sec", "MB/s"};
    case Quantity::TIME: return {"ns_per_op", "ns"};
    case Quantity::HASHING: return {"hash_mb_per_sec", "MB/s"};
  }
  return {"", ""};
}

double counter(const benchmark::BenchmarkReporter::Run& run, const char* name, double absent) {
  const auto found = run.counters.find(name);
  return found == run.counters.end() ? absent : found->second.value;
}

// Of one repetition; with several threads, over what all did together.
double value_of(const Case& one, bool wall, const benchmark::BenchmarkReporter::Run& run) {
  const double time = wall ? run.real_accumulated_time : run.cpu_accumulated_time;
  const double seconds = time / static_cast<double>(run.iterations);
  if (one.quantity == Quantity::BANDWIDTH || one.quantity == Quantity::HASHING) {
    return counter(run, BYTES, 0) / seconds / MIB;
  }
  return seconds * 1e9 / counter(run, OPERATIONS, 0);
}

std::string exact(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return std::isfinite(value) ? text : "null";
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') {
      result += '\\';
    }
    result += static_cast<unsigned char>(letter) < ' ' ? ' ' : letter;
  }
  return result + "\"";
}

std::string result_json(const Result& result) {
  std::string text = "{\"name\": " + quoted(result.of->name);
  const auto add = [&text](const char* key, const std::string& value) {
    text += std::string(", \"") + key + "\": " + value;
  };
  if (!result.skipped.empty()) {
    add("skipped", quoted(result.skipped));
    return text + "}";
  }
  if (result.of->size_bytes != 0) {
    add("block_bytes", std::to_string(result.of->size_bytes));
  }
  add("threads", std::to_string(result.of->threads));
  add(metric_of(result.of->quantity).id, exact(result.median()));
  if (result.gigahertz > 0) {
    add("latency_cycles", exact(result.median() * result.gigahertz));
    add("clock_ghz", exact(result.gigahertz));
  }
  if (result.huge_percent >= 0) {
    add("huge_page_pct", exact(result.huge_percent));
  }
  if (result.values.size() > 1) {
    add("spread_pct", exact(result.spread_percent()));
  }
  add("iterations", exact(result.iterations));
  std::string values;
  for (const double value : result.values) {
    values += (values.empty() ? "" : ", ") + exact(value);
  }
  add("repetitions", "[" + values + "]");
  return text + "}";
}

std::string result_text(const Result& result) {
  char line[200];
  if (!result.skipped.empty()) {
    std::snprintf(line, sizeof line, "%-32s skipped: ", result.of->name.c_str());
    return line + result.skipped + "\n";
  }
  const Metric metric = metric_of(result.of->quantity);
  std::snprintf(line, sizeof line, "%-32s %14.3f %-5s +- %5.2f %%", result.of->name.c_str(),
                result.median(), metric.unit, result.spread_percent() / 2);
  std::string text = line;
  if (result.gigahertz > 0) {
    std::snprintf(line, sizeof line, " %10.1f cycles", result.median() * result.gigahertz);
    text += line;
  }
  return text + "\n";
}

}  // namespace

double Result::median() const {
  std::vector<double> ordered = values;
  std::sort(ordered.begin(), ordered.end());
  const std::size_t middle = ordered.size() / 2;
  return ordered.size() % 2 == 1 ? ordered[middle] : (ordered[middle - 1] + ordered[middle]) / 2;
}

double Result::spread_percent() const {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return 100.0 * (*high - *low) / median();
}

void Report::ReportRuns(const std::vector<Run>& runs) {
  Result result;
  for (const Run& run : runs) {
    if (run.run_type != Run::RT_Iteration) {
      continue;
    }
    result.of = cases_.at(run.run_name.function_name);
    if (run.error_occurred) {
      result.skipped = run.error_message;
      break;
    }
    const double value = value_of(*result.of, result.of->waits || options_.wall, run);
    if (!std::isfinite(value)) {
      result.skipped = "it took no time that can be measured";
      break;
    }
    result.values.push_back(value);
    result.iterations = static_cast<double>(run.iterations);
    result.gigahertz = std::max(result.gigahertz, counter(run, GIGAHERTZ, 0));
    result.huge_percent = counter(run, HUGE_PERCENT, -1);
  }
  if (result.of == nullptr) {
    return;
  }
  print(options_.json ? (first_ ? "\n  " : ",\n  ") + result_json(result) : result_text(result));
  first_ = false;
}

void Report::begin() {
  if (!options_.json) {
    return;
  }
  print(std::string("{\"hostbench\": ") + quoted(VERSION) +
        ", \"settings\": {\"repetitions\": " + std::to_string(options_.repetitions) +
        ", \"seconds\": " + exact(options_.seconds) +
        ", \"threads\": " + std::to_string(options_.threads) +
        ", \"wall\": " + (options_.wall ? "true" : "false") + ", \"hash_size\": " + std::to_string(options_.hash_size) +
        ", \"vector_bytes\": " + std::to_string(vector_bytes()) +
        ", \"compiler\": " + quoted(__VERSION__) + "},\n \"benchmarks\": [");
}

void Report::end() {
  if (options_.json) {
    print("\n]}\n");
  }
}

void Report::print(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
    written_ = false;
  }
}

}  // namespace hostbench
