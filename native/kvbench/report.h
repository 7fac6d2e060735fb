// Results as text: db_bench's form, and one line of JSON with full precision.
#pragma once

#include <string>

#include "runner.h"

namespace kvbench {

std::string header_text(const Options& options, const EngineInfo& engine, const DriverCost* cost);
std::string header_json(const Options& options, const EngineInfo& engine, const DriverCost* cost);
std::string result_text(const PhaseResult& result, bool histogram);
std::string result_json(const PhaseResult& result, bool histogram);

}  // namespace kvbench
