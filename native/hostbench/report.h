// What was measured, for people or as one JSON document, each benchmark as soon as it is done.
#pragma once

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "cases.h"
#include "options.h"

namespace hostbench {

// One benchmark after all its repetitions. A value is in the unit of its metric, see README.md.
struct Result {
  const Case* of = nullptr;
  std::vector<double> values;  // one for each repetition
  double iterations = 0;       // of one repetition
  double gigahertz = 0;        // 0: not measured
  double huge_percent = -1;    // below 0: says nothing
  std::string skipped;         // why; else empty

  double median() const;
  double spread_percent() const;  // of all repetitions, smallest to largest, in per cent of the median
};

class Report : public benchmark::BenchmarkReporter {
 public:
  Report(const Options& options, std::map<std::string, const Case*> cases)
      : options_(options), cases_(std::move(cases)) {}

  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override;

  void begin();
  void end();
  bool written() const { return written_; }

 private:
  void print(const std::string& text);

  const Options& options_;
  std::map<std::string, const Case*> cases_;
  bool first_ = true;
  bool written_ = true;
};

}  // namespace hostbench
